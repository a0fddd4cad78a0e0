"""The baselines against their naive versions on logs so small that this can be done without compiling, too."""

from __future__ import annotations

import pytest

from algorithms.test_baselines_against_naive import VARIANTS, Pair, compare


@pytest.mark.parametrize(("kind", "options"), VARIANTS)
def test_baselines(kind, options):
    compare(kind, transitions=40, bonus_scale=0.01, bins=2, **options)


@pytest.mark.parametrize("kind", ["UCBVI", "GreedyUCBVI", "AdaptiveQL"])
def test_room_grows(kind):
    def room():
        model = pair.agent.model
        return model.child.size if kind == "AdaptiveQL" else len(model.store.window)

    pair = Pair(kind, 1, 1, bins=30)
    before = room()
    for i in range(120):
        x = [i % 30 / 30]
        pair.begin_episode()
        pair.observe(x, 0, 0.5, x, 0, False)
    pair.begin_episode()
    pair.check([[i / 30] for i in range(30)])
    assert room() > before

"""The baselines against their naive versions on logs so small that this can be done without compiling, too."""

from __future__ import annotations

import pytest

from algorithms.test_baselines_against_naive import VARIANTS, Pair, compare


@pytest.mark.parametrize(("kind", "options"), VARIANTS)
def test_baselines(kind, options):
    compare(kind, transitions=40, bonus_scale=0.01, bins=2, **options)


def test_room_grows():
    for kind in ("UCBVI", "GreedyUCBVI", "AdaptiveQL"):
        pair = Pair(kind, 1, 1, bins=30)
        size = pair.agent._model[-4 if kind == "AdaptiveQL" else 1]
        for i in range(30):
            pair.begin_episode()
            pair.observe([i / 30], 0, 0.5, [i / 30], 0, False)
        pair.begin_episode()
        pair.check([[i / 30] for i in range(30)])
        assert pair.agent._model[-4 if kind == "AdaptiveQL" else 1][0].size >= size[0].size

"""Automatic settings against the rule in plain NumPy, on what the agents themselves play in real environments."""

from __future__ import annotations

import functools

import gymnasium as gym
import numpy as np
import pytest
from numpy.testing import assert_allclose

import kernelrl as krl
from kernelrl.jit.stream import episode_seed
from kernelrl.planning import rehearsal
from kernelrl.planning.reading import read_q
from kernelrl.planning.sides import DEPLOYED
from naive import deploying, metrics
from naive.automatic import NaiveAutomatic
from naive.estimates import argmax_set
from pairs import READ_OUTS
from walks import limited, pushed

both = pytest.mark.parametrize("greedy", [False, True])


@pytest.fixture(autouse=True)
def few_simulated_episodes(monkeypatch):
    """Plain NumPy takes long for each; tests/core/test_rehearsal.py has more."""
    monkeypatch.setattr(rehearsal, "EPISODES", 8)
    monkeypatch.setattr(deploying, "EPISODES", 8)


rooms = functools.partial(gym.make, "kernelrl/TwinRooms-v0", goal=(0.3, 0.3), radius=0.3)
line = functools.partial(limited, noise=0.3)
plane = functools.partial(limited, widths=(1.0, 30.0), ends=True)
space = functools.partial(limited, widths=(1.0, 2.0, 3.0), unbounded=True)
CASES = {  # environment, range of rewards, number of episodes, options of the agent, what must have happened
    "line": (line, (-1, 2), 70, {}, {"scale", "finer"}),
    "plane": (plane, (-1, 2), 60, {}, {"scale"}),
    "plane, few": (plane, (-1, 2), 50, {"max_representatives": 40}, {"scale", "coarser"}),
    "plane, per step": (plane, (-1, 2), 30, {"stationary": False}, {"scale"}),
    "plane, given metric": (plane, (-1, 2), 40, {"metric": "manhattan"}, {"scale"}),
    "plane, narrow kernel": (plane, (-1, 2), 30, {"kernel": "uniform"}, {"scale"}),
    "plane, given merge distance": (plane, (-1, 2), 40, {"representatives": 1.1}, {"scale"}),
    "unbounded": (space, (-1, 2), 40, {}, {"scale"}),
    "rooms": (rooms, (0, 1), 24, {}, {"scale"}),
    "pushed": (pushed, (-1, 2), 50, {"action_bins": 7}, {"scale", "finer"}),
    "pushed in two ways": (functools.partial(pushed, shape=(2, 1)), (-1, 2), 40, {"action_bins": (3, 4)}, {"scale"}),
    "pushed, not short": (functools.partial(pushed, horizon=16), (-1, 2), 25, {"action_bins": 7}, {"scale", "finer"}),
    "pushed, ends": (functools.partial(pushed, ends=True), (-1, 2), 50, {"action_bins": 7}, {"scale", "finer"}),
    "pushed, given metric": (pushed, (-1, 2), 40, {"action_bins": 7, "metric": "manhattan"}, {"scale", "finer"}),
    "pushed, per step": (pushed, (-1, 2), 30, {"action_bins": 5, "stationary": False}, {"scale", "finer"}),
}


class Both:
    """An agent and the naive one, in one environment."""

    def __init__(self, greedy, case, seed=0):
        make, self.range, self.episodes, options, _ = CASES[case]
        self.env, self.seed, self.every = make(), seed, 50 if case == "rooms" else 10
        box = self.env.observation_space
        self.H = self.env.spec.max_episode_steps if self.env.spec else getattr(make, "keywords", {}).get("horizon", 8)
        cls = krl.GreedyKernelUCBVI if greedy else krl.KernelUCBVI
        self.agent = cls(reward_range=self.range, **options)
        self.agent.plan_tolerance = 1e-12
        self.agent.start(box, self.env.action_space, self.H, seed)
        self.A, self.number = self.agent.spaces.actions, self.agent.spaces.check_action
        self.low, self.width = self.range[0], self.range[1] - self.range[0]
        rho = getattr(metrics, options["metric"]) if "metric" in options else None
        self.naive = NaiveAutomatic(
            greedy, self.H, self.A, box.low, box.high, -self.low / self.width,
            options.get("max_representatives", 3000), rho, options.get("representatives"),
            options.get("stationary", True), options.get("kernel", "gaussian"), self.agent.spaces.net,
        )  # fmt: skip

    def play(self):
        """All episodes, with checks before each of them and, of what is read, now and then."""
        for k in range(self.episodes):
            x, _ = self.env.reset(seed=int(episode_seed(self.seed, k)))
            self.agent.begin_episode()
            self.naive.begin_episode()
            self.check_settings()
            if self.naive.s is not None and (k % self.every == 0 or k == self.episodes - 1):
                self.check_read_outs()
            if self.naive.s is not None and k in (self.episodes // 2, self.episodes - 1):
                self.check_deployed()
            for h in range(self.H):
                a = self.agent.choose(x, h)
                y, r, terminated, truncated, _ = self.env.step(a)
                self.agent.observe(x, a, float(r), y, h, terminated=terminated)
                a = self.number(a)
                self.naive.observe(x, a, (float(r) - self.low) / self.width, y, h, terminated)
                x = y
                if terminated or truncated:
                    break
            self.agent.end_episode()

    def check_settings(self):
        """Scale, grain, merge distance and representatives."""
        found, naive, reps = self.agent.to_store()["automatic"], self.naive, self.agent.model.store.reps
        assert (found["scale"] is None) == (naive.s is None)
        if naive.s is None:
            return
        assert_allclose(found["scale"], naive.s, rtol=1e-12)
        assert found["grain"] == pytest.approx(naive.grain, rel=1e-12) and found["due"] == naive.due
        assert reps.merge == pytest.approx(naive.distance, rel=1e-12)
        assert self.agent.number_of_representatives == len(naive.states)
        assert found["depends"] == naive.depends
        chosen = (naive.root, naive.most) if naive.short else (0.02, 20.0)
        assert_allclose([found["root"], found["others"]], chosen, rtol=1e-9)
        points = reps.points[: len(naive.states), :, 0].copy()
        points[:, : len(naive.low)] *= naive.s if naive.rho is None else 1.0
        assert_allclose(points, naive.states, rtol=1e-12, atol=1e-12)
        used = 1.0 / np.sqrt(reps.local[: len(naive.states), : self.A])
        table = naive.bandwidths.local.table
        expected = [table.get(u.tobytes(), np.full(self.A, naive.bandwidths.local.start)) for u in naive.states]
        assert_allclose(used, expected, rtol=1e-9)

    def states(self):
        """Some that were seen, and some around them."""
        rng = np.random.default_rng(len(self.naive.log))
        seen = np.array([t[0] for t in self.naive.log])[rng.integers(len(self.naive.log), size=8)]
        near = seen + 0.1 * (seen.max(axis=0) - seen.min(axis=0)) * rng.standard_normal(seen.shape)
        box = self.env.observation_space
        return np.clip(np.concatenate([seen, near]), box.low, box.high)

    def check_read_outs(self):
        """All of them, and the learning policy."""
        states = self.states()
        for h in sorted({0, self.H // 2, self.H - 1}):
            places = np.array([self.naive.place(x, h) for x in states])
            for name in READ_OUTS:
                expected = getattr(self.naive.before, name)(places, h)
                if name != "counts":
                    expected = expected * self.width
                if name in ("q_values", "values"):
                    expected = expected + self.low * (self.H - h)
                actual = getattr(self.agent, name)(states, step=h)
                assert_allclose(actual, expected, rtol=1e-9, atol=1e-9 * self.width, err_msg=f"{name} at step {h}")
            q = self.naive.before.q_values(places, h)
            for i, x in enumerate(states):
                assert self.number(self.agent.choose(x, h)) in argmax_set(q[i])

    def check_deployed(self):
        """The policy to deploy."""
        states, deployed = self.states(), self.naive.policy()
        for h in sorted({0, self.H // 2, self.H - 1}):
            q = deployed.q_values(np.array([self.naive.place(x, h) for x in states]), h)
            for i, x in enumerate(states):
                assert self.number(self.agent.act(x, step=h)) in argmax_set(q[i])
            actual = read_q(self.agent._deployed[1], DEPLOYED, states, h)
            assert_allclose(actual, q, rtol=1e-9, atol=1e-9, err_msg=f"policy to deploy at step {h}")


@both
@pytest.mark.parametrize("case", CASES)
def test_against_naive(case, greedy):
    pair = Both(greedy, case)
    pair.play()
    assert set(pair.naive.rebuilt) == CASES[case][4]


class ByStep(gym.Wrapper):
    """Rewards are paid at the end, and the motion may turn round half-way."""

    def __init__(self, turns):
        super().__init__(limited(noise=0.3))
        self.turns = turns

    def reset(self, **options):
        self.h = 0
        return self.env.reset(**options)

    def step(self, action):
        self.h += 1
        y, r, *others = self.env.step(1 - action if self.turns and self.h > 4 else action)
        return y, r if self.h == 8 or self.turns else 0.0, *others


@both
@pytest.mark.parametrize(("turns", "seen"), [(False, "rewards"), (True, "motion")])
def test_what_depends_on_the_step(turns, seen, greedy):
    CASES["by step"] = (lambda: ByStep(turns), (-1, 2), 50, {}, set())
    pair = Both(greedy, "by step")
    del CASES["by step"]
    with pytest.warns(UserWarning, match="stationary: .* to depend on the step of the episode") as warned:
        pair.play()
    assert pair.naive.depends == seen and len(warned) == 1


@both
def test_scales_that_change(greedy):
    """The first steps are small, and later ones are not."""
    env = limited(widths=(1.0, 1.0), step=0.04, noise=0.003)  # without noise many states are equally near
    CASES["moving"] = (lambda: env, (-1, 2), 40, {}, {"scale"})
    pair = Both(greedy, "moving")
    del CASES["moving"]
    step = pair.naive.begin_episode

    def faster():
        env.unwrapped.size = 0.04 if pair.naive.episodes < 16 else 0.3
        step()

    pair.naive.begin_episode = faster
    pair.play()
    assert pair.naive.rebuilt.count("scale") > 1


def test_nothing_moves():
    """An axis on which nothing is seen to happen has the least scale; without a width it is 1 wide."""
    naive = NaiveAutomatic(False, 2, 2, np.array([-np.inf, 0.0, 0.0]), np.array([np.inf, 1.0, 0.0]))
    agent = krl.KernelUCBVI(reward_range=(0, 1))
    box = gym.spaces.Box(naive.low, naive.high, dtype=np.float64)
    agent.start(box, gym.spaces.Discrete(2), 2, 0)
    for _ in range(60):
        agent.begin_episode()
        naive.begin_episode()
        for h in range(2):
            t = np.array([3.0, 0.5, 0.0]), h, 0.5, np.array([3.0, 0.5, 0.0]), h
            agent.observe(*t)
            naive.observe(*t)
        agent.end_episode()
    assert_allclose(agent.to_store()["automatic"]["scale"], [0.03, 0.03, 0.03])
    assert_allclose(naive.s, [0.03, 0.03, 0.03])

"""Action masks: at choosing time in every agent, from `info["action_mask"]` in `fit` and `evaluate`, in `predict`."""

from __future__ import annotations

import threading
from typing import Any, NamedTuple

import gymnasium as gym
import numpy as np
import pytest

import kernelrl as krl
from kernelrl.episodes import verbs
from kernelrl.episodes.masked import choose_allowed
from kernelrl.jit.handles import hand_over
from kernelrl.jit.stream import episode_seed
from plain import GREEDY
from small_envs import Line

H, A = 5, 4
AGENTS = {
    "KernelUCBVI": krl.KernelUCBVI,
    "KernelUCBVI, every sample": lambda: krl.KernelUCBVI(**{**GREEDY, "bandwidth": 0.1, "representatives": None}),
    "GreedyKernelUCBVI": krl.GreedyKernelUCBVI,
    "UCBVI": lambda: krl.UCBVI(bins=4),
    "GreedyUCBVI": lambda: krl.GreedyUCBVI(bins=4),
    "OptQL": lambda: krl.OptQL(bins=4),
    "AdaptiveQL": krl.AdaptiveQL,
    "AdaMB": krl.AdaMB,
    "RandomAgent": krl.RandomAgent,
}
every_agent = pytest.mark.parametrize("make", AGENTS.values(), ids=AGENTS)


class Barred(Line):
    """The line, with actions that depend on the place: action `first` only in the right half, the last never."""

    def __init__(self, masks: bool = True, first: int = 0) -> None:
        super().__init__(actions=A, first=first)
        self.masks, self.forbidden = masks, 0

    def mask(self) -> np.ndarray:
        return np.array([self.x > 0.5, True, True, False], np.int8)

    def reset(self, **given: Any) -> Any:
        x, _ = super().reset(**given)
        return x, {"action_mask": self.mask()} if self.masks else {}

    def step(self, action: Any) -> Any:
        self.forbidden += not self.mask()[action - self.action_space.start]
        *result, _ = super().step(action)
        return *result, {"action_mask": self.mask()} if self.masks else {}


def barred(**options: Any) -> gym.Env:
    return gym.wrappers.TimeLimit(Barred(**options), H)


def learnt(make: Any, episodes: int = 30, **options: Any) -> Any:
    agent = make()
    agent.fit(barred(**options), episodes, seed=0, progress=False)
    return agent


# ------------------------------------------------------------------------------------------------------------ choosing


@every_agent
def test_masked_choices_are_the_best_of_the_allowed(make):
    agent, rng = learnt(make), np.random.default_rng(0)
    for _ in range(40):
        x, h, mask = rng.random(1), int(rng.integers(H)), rng.random(A) < 0.6
        mask[rng.integers(A)] = True
        q = agent.q_values([x], h)[0]
        a = agent.choose(x, h, mask=mask)
        assert mask[a] and q[a] == q[mask].max()
        assert mask[agent.act(x, h, mask=mask)]
        assert agent.act(x, h, mask=np.ones(A, bool)) == agent.act(x, h) or isinstance(agent, krl.RandomAgent)
        only = np.eye(A, dtype=bool)[a]
        assert agent.choose(x, h, mask=only) == agent.act(x, h, mask=only) == a


@every_agent
def test_a_mask_that_allows_everything_changes_nothing(make, tmp_path):
    """The same action, and the same random numbers for ties, as without a mask."""
    agent = learnt(make, episodes=3)
    agent.save(tmp_path / "a.krl")
    twin, rng = krl.load(tmp_path / "a.krl"), np.random.default_rng(0)
    for _ in range(100):
        x, h = rng.random(1), int(rng.integers(H))
        assert agent.choose(x, h) == twin.choose(x, h, mask=np.ones(A, np.int8))
        assert np.array_equal(agent.model.stream, twin.model.stream)


def test_ties_among_the_allowed_are_broken_at_random():
    agent = krl.RandomAgent()
    agent.start(gym.spaces.Box(0.0, 1.0, (1,)), gym.spaces.Discrete(A, start=3), H, seed=0)
    chosen = [agent.choose([0.5], 0, mask=[True, False, True, False]) for _ in range(200)]
    assert set(chosen) == {3, 5} and 60 < chosen.count(3) < 140
    states = np.random.default_rng(0).random((200, 1))
    deployed = [agent.act(x, 0, mask=[True, False, True, False]) for x in states]
    assert set(deployed) == {3, 5} and 60 < deployed.count(3) < 140


@every_agent
def test_fit_and_evaluate_obey_the_mask_of_the_environment(make):
    env, agent = barred(), make()
    agent.fit(env, 40, seed=0, progress=False)
    agent.evaluate(env, 10)
    assert env.unwrapped.forbidden == 0
    free = barred(masks=False)
    make().fit(free, 40, seed=0, progress=False)
    assert free.unwrapped.forbidden > 0


def test_masks_count_from_the_first_action():
    env = barred(first=2)
    krl.OptQL(bins=4).fit(env, 20, seed=0, progress=False)
    assert env.unwrapped.forbidden == 0 and set(env.unwrapped.taken) == {2, 3, 4}


def test_by_hand_as_in_fit():
    """A loop of one's own with `choose(…, mask=…)` is what `fit` does."""
    fitted, agent, env = learnt(lambda: krl.GreedyUCBVI(bins=4), 10), krl.GreedyUCBVI(bins=4), barred()
    agent.start(env.observation_space, env.action_space, H, seed=0)
    for k in range(10):
        x, info = env.reset(seed=int(episode_seed(0, k)))
        agent.begin_episode()
        for h in range(H):
            a = agent.choose(x, h, mask=info["action_mask"])
            y, r, terminated, _, info = env.step(a)
            agent.observe(x, a, r, y, h, terminated)
            x = y
        agent.end_episode()
    states = np.linspace(0, 1, 9)[:, None]
    assert all(np.array_equal(agent.q_values(states, h), fitted.q_values(states, h)) for h in range(H))


def test_parts_files_and_the_monitor(tmp_path):
    states = np.linspace(0, 1, 9)[:, None]
    whole = krl.KernelUCBVI()
    returns = whole.fit(barred(), 30, seed=0, progress=False).returns
    parts = krl.KernelUCBVI()
    parts.fit(barred(), 10, seed=0, progress=False)
    parts.save(tmp_path / "a.krl")
    parts = krl.load(tmp_path / "a.krl")
    env = barred()
    history = parts.fit(env, 20, progress=False, monitor=lambda states, step: np.zeros(len(states)))
    assert np.array_equal(history.returns, returns[10:]) and env.unwrapped.forbidden == 0
    assert np.array_equal(parts.q_values(states, 1), whole.q_values(states, 1))


class Fails(gym.Wrapper):
    """Raises in the given step."""

    def __init__(self, env: gym.Env, at: int) -> None:
        super().__init__(env)
        self.left = at

    def step(self, action: Any) -> Any:
        self.left -= 1
        if self.left == 0:
            raise OSError("the plug was pulled")
        return self.env.step(action)


def test_an_agent_is_brought_back_with_the_same_masks():
    agent, states = krl.GreedyUCBVI(bins=4), np.linspace(0, 1, 9)[:, None]
    with pytest.raises(OSError, match="plug") as error:
        agent.fit(Fails(barred(), 12 * H + 3), 30, seed=0, progress=False)
    assert agent.episodes == len(error.value.history) == 12
    other = learnt(lambda: krl.GreedyUCBVI(bins=4), 12)
    assert all(np.array_equal(agent.q_values(states, h), other.q_values(states, h)) for h in range(H))


class Steps(NamedTuple):
    """Compiled dynamics: action 0 pays nothing, the others 1."""

    width: float


@krl.envs.reset.implement(Steps)
def start_steps(env, seed, stream, state):
    state[0] = 0.0


@krl.envs.advance.implement(Steps)
def advance_steps(env, stream, state, action, next_state):
    next_state[0] = min(state[0] + env.width, 1.0)
    return 1.0 * min(action, 1), False, False


class StepsEnv(krl.envs.CompiledEnv):
    """Allows action 0 only where the state is `beyond` a place, so nothing can be earned there."""

    def __init__(self, beyond: float = -1.0) -> None:
        box = gym.spaces.Box(0.0, 1.0, (1,), np.float64)
        super().__init__(Steps(0.1), observation_space=box, action_space=gym.spaces.Discrete(3))
        self.beyond, self.lock = beyond, threading.Lock()  # a lock cannot be copied

    def info(self) -> dict[str, Any]:
        masked = self._state[0] > self.beyond
        return {"action_mask": np.array([True, False, False])} if masked else {}


class QuickStepsEnv(StepsEnv):
    masks_actions = False

    def info(self) -> dict[str, Any]:
        return {"place": float(self._state[0])}


def test_a_compiled_environment_with_masks_runs_in_python():
    env = gym.wrappers.TimeLimit(StepsEnv(), H)
    assert krl.OptQL(bins=4).fit(env, 5, seed=0, progress=False).returns.tolist() == [0.0] * 5
    with pytest.raises(ValueError, match=r"^driver: .* StepsEnv has an info of its own.* masks_actions = False"):
        krl.OptQL(bins=4).fit(env, 5, seed=0, driver="compiled", progress=False)


def test_a_compiled_environment_with_masks_in_some_states_runs_in_python():
    env, agent = gym.wrappers.TimeLimit(StepsEnv(beyond=0.25), H), krl.OptQL(bins=4)
    earned = agent.fit(env, 30, seed=0, progress=False).returns
    assert earned.max() <= 3.0  # in the first three states, from 0 to 0.2
    assert agent.evaluate(env, 5).mean <= 3.0


def test_a_compiled_environment_that_says_it_has_no_masks_is_compiled():
    env = gym.wrappers.TimeLimit(QuickStepsEnv(), H)
    assert krl.OptQL(bins=4).fit(env, 5, seed=0, driver="compiled", progress=False).returns.max() > 0.0


# -------------------------------------------------------------------------------------------------- what is no mask

BAD = {
    "no action": ([False] * A, ValueError, "{name} allows no action"),
    "too short": ([True] * (A - 1), ValueError, r"{name} must have shape \(4,\), .* got shape \(3,\)"),
    "one number": (True, ValueError, r"{name} must have shape \(4,\), .* got shape \(\)"),
    "a table": ([[True] * A], ValueError, r"{name} must have shape \(4,\), .* got shape \(1, 4\)"),
    "floats": ([1.0] * A, TypeError, "{name} must hold booleans, .* got float64"),
    "words": (["yes"] * A, TypeError, "{name} must hold booleans"),
    "other numbers": ([0, 1, 2, 1], ValueError, "{name} must hold booleans, or whole numbers 0 and 1"),
    "ragged": ([[1], [1, 0]], ValueError, "{name} must have shape"),
}


@pytest.mark.parametrize("which", BAD)
def test_what_is_no_mask(which, monkeypatch):
    mask, kind, message = BAD[which]
    agent = learnt(krl.AdaptiveQL, 2)
    for name, call in {
        "mask": lambda: agent.choose([0.5], 0, mask=mask),
        "^mask": lambda: agent.act([0.5], 0, mask=mask),
        "action_masks": lambda: agent.predict([0.5], action_masks=mask),
        r'the environment\'s info\["action_mask"\]': lambda: agent.fit(barred(), 1, progress=False),
        r'^the environment\'s info\["action_mask"\]': lambda: agent.evaluate(barred(), 1),
    }.items():
        monkeypatch.setattr(Barred, "mask", lambda self: np.ones(A) if "info" not in name else mask)  # noqa: B023
        if "info" in name:
            monkeypatch.setattr(Barred, "step", Line.step)
        with pytest.raises(kind, match=message.format(name=name)):
            call()
    assert agent.episodes == 2


def test_a_batch_of_masks_in_which_one_allows_nothing():
    agent = learnt(krl.AdaptiveQL, 2)
    masks = [[True] * A, [False] * A, [False] * A]
    with pytest.raises(ValueError, match=r"^action_masks: row 1 \(the first is 0\) allows no action; at least one"):
        agent.predict([[0.5]] * 3, action_masks=masks)


def test_masks_of_continuous_actions():
    agent = krl.KernelUCBVI(action_bins=3)
    agent.start(gym.spaces.Box(0.0, 1.0, (1,)), gym.spaces.Box(0.0, 1.0, (1,)), H, seed=0)
    for call in (agent.choose, agent.act):
        with pytest.raises(ValueError, match=r"^mask: masks are for Discrete actions"):
            call([0.5], 0, mask=[True] * 3)


def test_ones_own_policy_must_know_of_masks():
    class Stubborn(krl.OptQL):
        def deployed_actions(self, states, step):
            return np.zeros(len(states), np.int64)

    agent = learnt(lambda: Stubborn(bins=4), 2)
    assert agent.act([0.5], 0) == 0
    with pytest.raises(TypeError, match=r"^mask: Stubborn has its own deployed_actions"):
        agent.act([0.5], 0, mask=[True] * A)


class Wordless(NamedTuple):
    """A model without read_q."""

    stream: np.ndarray


@verbs.choose.implement(Wordless)
def choose_wordless(model, state, h):
    return 0


def test_an_algorithm_without_q_values_cannot_be_masked():
    model = hand_over(Wordless(np.zeros(4, np.uint64)))
    with pytest.raises(TypeError, match=r"^Wordless does not implement read_q"):
        choose_allowed(model, np.zeros(1), 0, np.ones(2, bool))


# ------------------------------------------------------------------------------------------------------------- predict


@every_agent
def test_predict_one(make):
    agent = learnt(make)
    x, step = np.array([0.3]), None
    for h in range(H + 3):
        action, step = agent.predict(x, state=step)
        assert action == agent.act(x, min(h, H - 1)) and type(action) is int and step == h + 1
    assert agent.predict(x, state=3, episode_start=True)[1] == 1
    mask = [False, False, True, True]
    assert agent.predict(x, state=2, action_masks=mask)[0] == agent.act(x, 2, mask=mask)


@every_agent
def test_predict_a_batch(make):
    agent, rng = learnt(make), np.random.default_rng(0)
    x, steps = rng.random((20, 1)), rng.integers(0, H + 2, 20)
    start, masks = rng.random(20) < 0.3, rng.random((20, A)) < 0.5
    masks[:, 1] = True
    at = np.minimum(np.where(start, 0, steps), H - 1)
    actions, following = agent.predict(x, steps, start)
    assert actions.dtype == np.int64 and actions.tolist() == [agent.act(s, int(h)) for s, h in zip(x, at, strict=True)]
    assert np.array_equal(following, np.where(start, 0, steps) + 1)
    actions, _ = agent.predict(x, steps, start, action_masks=masks)
    assert actions.tolist() == [agent.act(s, int(h), mask=m) for s, h, m in zip(x, at, masks, strict=True)]


def test_predict_the_learning_policy(tmp_path):
    agent = learnt(lambda: krl.OptQL(bins=4))
    agent.save(tmp_path / "a.krl")
    twin = krl.load(tmp_path / "a.krl")
    x = np.linspace(0, 1, 7)[:, None]
    actions, _ = agent.predict(x, np.full(7, 2), deterministic=False)
    assert actions.tolist() == [twin.choose(s, 2) for s in x]
    actions, _ = agent.predict(x, np.full(7, 2), deterministic=False, action_masks=np.eye(A, dtype=bool)[[3] * 7])
    assert actions.tolist() == [3] * 7


def test_predict_as_evaluate_policy_calls_it():
    """A batch of environments whose episodes end at different times: each has its own step."""
    agent = learnt(krl.KernelUCBVI)
    envs = gym.vector.SyncVectorEnv(
        [lambda n=n: gym.wrappers.TimeLimit(Barred(masks=False), n) for n in (3, 5)],
        autoreset_mode=gym.vector.AutoresetMode.SAME_STEP,
    )
    x, _ = envs.reset(seed=0)
    states, starts, clocks = None, np.ones(2, bool), np.zeros(2, int)
    for _ in range(12):
        actions, states = agent.predict(x, state=states, episode_start=starts, deterministic=True)
        clocks[starts] = 0
        assert actions.tolist() == [agent.act(s, int(h)) for s, h in zip(x, clocks, strict=True)]
        x, _, terminated, truncated, _ = envs.step(actions)
        starts, clocks = terminated | truncated, clocks + 1


def test_predict_continuous_and_discrete():
    agent = krl.KernelUCBVI(action_bins=3)
    agent.fit("kernelrl/Oil-v0", 5, seed=0, progress=False)
    actions, steps = agent.predict(np.full((4, 1), 0.5), np.arange(4))
    assert actions.shape == (4, 1) and actions.dtype == np.float64 and steps.tolist() == [1, 2, 3, 4]
    one, _ = agent.predict([0.5], 1)
    assert np.array_equal(one, actions[1])
    assert agent.predict(np.zeros((0, 1)))[0].shape == (0, 1)
    table = krl.OptQL(horizon=3)
    table.start(gym.spaces.Discrete(5), gym.spaces.Discrete(2, start=1), 3, seed=0)
    assert table.predict(4) == (1, 1)
    actions, steps = table.predict(np.array([0, 4, 2]))
    assert actions.tolist() == [1, 1, 1] and steps.tolist() == [1, 1, 1]


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"observation": [[0.5, 0.5]]}, r"^observation must have shape \(n, 1\)"),
        ({"observation": [2.0]}, "^observation must lie in the box"),
        ({"observation": {"x": 1}}, "^observation must"),
        ({"state": -1}, "^state must be the step"),
        ({"state": 0.5}, "^state must be the step"),
        ({"state": [0, 1]}, "^state must be the step"),
        ({"episode_start": [True, False]}, "^episode_start must be 1 flags"),
        ({"episode_start": 2}, "^episode_start must be 1 flags"),
        ({"deterministic": "yes"}, "^deterministic must be True or False"),
    ],
)
def test_predict_refuses(given, message):
    agent = learnt(krl.AdaptiveQL, 2)
    with pytest.raises((ValueError, TypeError), match=message):
        agent.predict(**{"observation": [0.5], **given})
    with pytest.raises(RuntimeError, match="not been started"):
        krl.AdaptiveQL().predict([0.5])

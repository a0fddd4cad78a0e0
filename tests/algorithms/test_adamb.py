"""AdaMB against plain lists of balls."""

from __future__ import annotations

import gymnasium as gym
import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose

import kernelrl as krl
from kernelrl.algorithms.balls import finest_depth
from naive.adamb import NaiveAdaMB, NaiveJointAdaMB, root
from walks import limited, pushed

H = 3
LOW, HIGH = np.array([-1.0, 0.0, 5.0]), np.array([2.0, 0.5, 6.0])
DISCRETE = 3


def pair(axes, d=1, reward_range=(0, 1), scale=0.05, lipschitz=None, exponent=None, seed=0):
    """An agent and the naive one; Discrete actions have 0 axes."""
    agent = krl.AdaMB(
        horizon=H, bonus_scale=scale, reward_range=reward_range, lipschitz=lipschitz, split_exponent=exponent
    )
    space = gym.spaces.Box(LOW[:d], HIGH[:d], dtype=np.float64)
    actions = gym.spaces.Box(-2.0, 4.0, (axes,), np.float64) if axes else gym.spaces.Discrete(DISCRETE)
    agent.start(space, actions, H, seed)
    width = reward_range[1] - reward_range[0]
    box, nothing, optimism = (LOW[:d], HIGH[:d]), -reward_range[0] / width, root(H, scale)
    if axes:
        net = (agent.action_net + 2.0) / 6.0
        naive = NaiveJointAdaMB(H, net, finest_depth(axes), optimism, *box, nothing)
    else:
        naive = NaiveAdaMB(H, DISCRETE, optimism, *box, nothing)
    return agent, naive.begin(max(2, d) if exponent is None else exponent, lipschitz, width)


def check(agent, naive, states, rng, reward_range=(0, 1)):
    """All read-outs, the naive ones in the environment's units."""
    low, width = reward_range[0], reward_range[1] - reward_range[0]
    some = rng.permutation(agent.spaces.actions)[:15]
    for h in range(H):
        balls = [[naive.ball(x, h, a) for a in some] for x in states]
        for name, read in (
            ("q_values", lambda ball, h=h: ball.q * width + low * (H - h)),
            ("counts", lambda ball: ball.n),
            ("bonuses", lambda ball, h=h: naive.margin(ball, h) * width),
        ):
            expected = [[read(ball) for ball in row] for row in balls]
            assert_allclose(getattr(agent, name)(states, h)[:, some], expected, rtol=1e-9, atol=1e-9, err_msg=name)
        expected = [naive.value(x, h) * width + low * (H - h) for x in states]
        assert_allclose(agent.values(states, h), expected, rtol=1e-9, atol=1e-9)


def is_best(agent, naive, x, h):
    """Whether both policies take one of the best balls."""
    played = agent.choose(x, h), agent.act(x, h)
    if agent.spaces.net is None:
        q = naive.q_values(x, h)
        return all(q[action] >= q.max() - 1e-9 for action in played)
    best = max(ball.q for ball in naive.relevant(x, h))
    centres = [ball.corner[naive.d :] + ball.side / 2 for ball in naive.relevant(x, h) if ball.q >= best - 1e-9]
    return all(any(np.allclose((action + 2.0) / 6.0, centre) for centre in centres) for action in played)


@settings(max_examples=30, deadline=None)
@given(
    seed=st.integers(0, 10**6), axes=st.sampled_from([0, 1, 2]), d=st.sampled_from([1, 2]),
    episodes=st.integers(0, 25), lipschitz=st.sampled_from([None, 0.0, 0.3, 4.0]),
    exponent=st.sampled_from([None, 1.0, 1.5]), costs=st.booleans(),
)  # fmt: skip
@example(seed=0, axes=0, d=1, episodes=14, lipschitz=None, exponent=1.5, costs=False)  # 2^(1.5·2) is 8 visits
def test_any_log(seed, axes, d, episodes, lipschitz, exponent, costs):
    """Few places, so that there are ties and balls that are visited often; the corner of the box is one of them."""
    rng, reward_range = np.random.default_rng(seed), (-2.0, 0.0) if costs else (0.0, 1.0)
    agent, naive = pair(axes, d, reward_range, lipschitz=lipschitz, exponent=exponent)
    sites = LOW[:d] + (HIGH - LOW)[:d] * np.append(rng.random((4, d)), [np.ones(d), np.full(d, 0.5)], axis=0)
    for _ in range(episodes):
        agent.begin_episode()
        for h in range(H):
            x, y = sites[rng.integers(6, size=2)]
            a = int(rng.integers(agent.spaces.actions))
            if rng.random() < 0.7:
                a = agent.spaces.check_action(agent.choose(x, h))
            r, ends = float(rng.choice([0.0, 0.5, 1.0])), bool(rng.random() < 0.1)
            agent.observe(x, agent.spaces.action(a), r - 2.0 * costs * r, y, h, terminated=ends)
            naive.observe(x, a, (1.0 - r / 2.0) if costs else r, y, h, ends)
            if ends:
                break
        agent.end_episode()
        naive.end_episode()
    check(agent, naive, sites, rng, reward_range)
    for h in range(H):
        assert all(is_best(agent, naive, x, h) for x in sites)


@pytest.mark.parametrize(("axes", "d", "lipschitz"), [(0, 1, None), (1, 1, 2.0), (0, 3, 1.0), (2, 1, None)])
def test_learning(axes, d, lipschitz):
    """Of an agent that plays itself."""
    rng = np.random.default_rng(0)
    agent, naive = pair(axes, d, lipschitz=lipschitz, exponent=1.0)
    width = HIGH[:d] - LOW[:d]
    for _ in range(60 if d == 1 else 30):
        x = LOW[:d] + width * rng.random(d)
        agent.begin_episode()
        for h in range(H):
            action = agent.choose(x, h)
            a = agent.spaces.check_action(action)
            push = (0.1 * action.sum() if axes else 0.2 * (a - 1)) + 0.1 * rng.standard_normal(d)
            y = np.clip(x + push * width, LOW[:d], HIGH[:d])
            r = float(np.exp(-np.abs((y - LOW[:d]) / width - 0.7).sum()))
            agent.observe(x, action, r, y, h)
            naive.observe(x, a, r, y, h)
            x = y
        agent.end_episode()
        naive.end_episode()
    check(agent, naive, LOW[:d] + width * rng.random((8, d)), rng)
    assert len(naive.V[1]) > 4 and agent.model.deepest[0] > 1


@pytest.mark.parametrize("lipschitz", [None, 0.5])
@pytest.mark.parametrize("axes", [0, 1])
def test_cells_below_leaves(axes, lipschitz):
    """Deep balls reach cells of a step that nothing has divided; it is divided later, above them and along them."""
    rng = np.random.default_rng(1)
    agent, naive = pair(axes, lipschitz=lipschitz, exponent=1.0)
    x, action = [0.1], agent.spaces.action(0)
    for k in range(30):
        steps = [(0, x, rng.random(1))] if k < 20 else [(0, x, rng.random(1)), (1, rng.random(1), x)]
        agent.begin_episode()
        for h, here, y in steps:
            agent.observe(here, action, 0.5, y, h)
            naive.observe(here, 0, 0.5, y, h)
        agent.end_episode()
        naive.end_episode()
        states = agent.model.states
        if k == 19:
            assert states.divided.sum() < (states.child >= 0).sum()
        if k % 5 == 4:
            check(agent, naive, LOW[:1] + 3.0 * rng.random((6, 1)), rng)


def test_values_of_one_ball_by_hand():
    """Two visits of one place of a box that nothing has divided at the next step."""
    agent, _ = pair(0, scale=0.0, exponent=4.0)
    x, y = [0.5], [1.25]
    for reward in (0.5, 0.25):
        agent.begin_episode()
        agent.observe(x, 0, reward, y, 0)
        agent.observe(y, 0, 0.0, y, 1, terminated=True)
        agent.end_episode()
    assert agent.q_values([y], 1)[0, 0] == 0.0  # terminated
    assert agent.values([y], 1)[0] == H - 1  # the other actions may be better
    assert agent.q_values([x], 0)[0, 0] == pytest.approx(0.375 + H - 1)
    assert agent.counts([x], 0)[0, 0] == 2.0 and agent.counts([x], 0)[0, 1] == 0.0


def test_data_without_episodes_are_used():
    """Values are computed again before an episode if there are data they do not know."""
    agent, naive = pair(0)
    agent.begin_episode()
    agent.observe([0.0], 1, 0.25, [0.5], 0)
    naive.observe([0.0], 1, 0.25, [0.5], 0)
    agent.begin_episode()
    naive.end_episode()
    check(agent, naive, np.array([[0.0], [0.5]]), np.random.default_rng(0))


@pytest.mark.parametrize("lipschitz", [None, 2.0])
def test_the_partition_covers_the_joint_box(lipschitz):
    agent = krl.AdaMB(lipschitz=lipschitz)
    agent.fit(pushed(shape=(2,)), 40, seed=0, progress=False)
    found = agent.partition(0)
    assert found.low.shape[1] == 3 and len(found.low) > 8
    assert (found.high - found.low).prod(axis=1).sum() == pytest.approx(1.0 * 2.0 * 2.0)


@pytest.mark.parametrize("options", [{}, {"lipschitz": 1.0}])
@pytest.mark.parametrize("driver", ["compiled", "python"])
def test_drivers_and_files(driver, options, tmp_path):
    options = {"bonus_scale": 0.3, **options}
    agent = krl.AdaMB(**options)
    returns = agent.fit("kernelrl/Oil-v0", 300, seed=1, driver=driver, progress=False).returns
    other = krl.AdaMB(**options)
    other.fit("kernelrl/Oil-v0", 120, seed=1, progress=False)
    other.save(tmp_path / "a.krl")
    loaded = krl.load(tmp_path / "a.krl")
    assert np.array_equal(loaded.values([[0.3], [0.7]], 2), other.values([[0.3], [0.7]], 2))
    assert np.array_equal(loaded.fit("kernelrl/Oil-v0", 180, progress=False).returns, returns[120:])
    for name, array in agent.model._asdict().items():  # what a file leaves out is made again
        if name in ("cell", "following", "last", "deepest"):
            assert np.array_equal(getattr(loaded.model, name), array), name
    for name, array in agent.model.states._asdict().items():
        assert np.array_equal(getattr(loaded.model.states, name), array), name
    assert returns[-50:].mean() > returns[:50].mean()


@pytest.mark.parametrize("env", [limited(), limited(widths=(1.0, 3.0), ends=True), pushed()])
def test_the_interface(env):
    krl.testing.check_agent(krl.AdaMB, env=env)


def test_the_lipschitz_constant_is_in_own_units():
    """Ten times the rewards and ten times L: the same policy, ten times the values."""
    results = []
    for factor in (1.0, 10.0):
        agent = krl.AdaMB(bonus_scale=0.2, lipschitz=0.5 * factor, reward_range=(0.0, factor))
        env = gym.wrappers.TransformReward(gym.make("kernelrl/Oil-v0"), lambda r, factor=factor: factor * r)
        agent.fit(env, 60, seed=0, progress=False)
        results.append((agent.values([[0.2], [0.8]], 1) / factor, agent.bonuses([[0.2]], 1)[0, :3] / factor))
    for one, ten in zip(*results, strict=True):
        assert_allclose(one, ten, rtol=1e-9)


def test_bad_input():
    with pytest.raises(ValueError, match=r"^split_exponent must lie between 0\.5 and 24"):
        krl.AdaMB(split_exponent=0.1)
    with pytest.raises(ValueError, match=r"^lipschitz"):
        krl.AdaMB(lipschitz=-1.0)
    with pytest.raises(ValueError, match=r"^observation_space: a ball splits into 2\^d.* got 13"):
        krl.AdaMB().start(gym.spaces.Box(0.0, 1.0, (10,)), gym.spaces.Box(0.0, 1.0, (3,)), 2, 0)
    with pytest.raises(ValueError, match=r"AdaMB"):
        krl.AdaMB().start(gym.spaces.Box(-np.inf, np.inf, (1,)), gym.spaces.Discrete(2), 2, 0)

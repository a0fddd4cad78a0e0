"""Agents of Stable-Baselines3 itself; these tests need the extra `peers`."""

from __future__ import annotations

import gymnasium as gym
import numpy as np
import pytest

import kernelrl as krl
from experiment_parts import RANDOM, table, write_toml
from kernelrl import experiments, peers
from kernelrl.agents.evaluation import FIRST
from kernelrl.experiments.config import AgentEntry, ExperimentError
from kernelrl.experiments.objects import build_any
from kernelrl.jit.stream import episode_seed
from kernelrl.peers.training import Training

sb3 = pytest.importorskip("stable_baselines3")
torch = pytest.importorskip("torch")
from stable_baselines3.common.callbacks import StopTrainingOnMaxEpisodes  # noqa: E402

SMALL = {
    "A2C": {},
    "PPO": {"n_steps": 32, "batch_size": 16, "n_epochs": 2},
    "DQN": {"learning_starts": 20, "buffer_size": 1000},
    "SAC": {"learning_starts": 20, "batch_size": 16, "buffer_size": 1000},
    "TD3": {"learning_starts": 20, "batch_size": 16, "buffer_size": 1000, "train_freq": [1, "episode"]},
}
EPISODES = 6
HORIZON = {"CartPole-v1": 500, "Pendulum-v1": 25}


def game(name):
    return "Pendulum-v1" if name in ("SAC", "TD3") else "CartPole-v1"


def make(name):
    return gym.make(game(name), max_episode_steps=HORIZON[game(name)])


def trained(name, seed=3, seconds=1000.0, **given):
    peer = build_any(AgentEntry(label="it", agent=f"sb3:{name}", **{**SMALL[name], **given}))
    training, returns = Training(peer, make(name), seed, EPISODES), []
    while peer.episodes < EPISODES:
        returns.append(training.play(seconds).returns)
    training.close()
    return peer, np.concatenate(returns)


def parameters(model):
    return {name: value.numpy().copy() for name, value in model.policy.state_dict().items()}


def same(one, other):
    return one.keys() == other.keys() and all(np.array_equal(one[name], other[name]) for name in one)


class Plain(gym.Wrapper):
    """The environment as the library sees it, written down once more: time appended, seeds of the episodes."""

    def __init__(self, env, H, seed):
        super().__init__(env)
        self.H, self.seed, self.k, self.returns = H, seed, -1, []
        box = env.observation_space
        self.observation_space = gym.spaces.Box(np.append(box.low, np.float32(0)), np.append(box.high, np.float32(1)))

    def reset(self, **ignored):
        self.k, self.h = self.k + 1, 0
        self.returns.append(0.0)
        x, info = self.env.reset(seed=int(episode_seed(self.seed, self.k)))
        return np.append(x, 0).astype(np.float32), info

    def step(self, action):
        x, reward, terminated, truncated, info = self.env.step(action)
        self.h += 1
        self.returns[-1] += float(reward)
        return np.append(x, self.h / self.H).astype(np.float32), reward, terminated, truncated, info


@pytest.mark.parametrize("name", sorted(SMALL))
def test_it_is_the_library_as_it_is(name):
    """The same returns as by the library alone, with its own callback; the same policy where that learns as much."""
    peer, returns = trained(name)
    H = HORIZON[game(name)]
    env = Plain(make(name), H, 3)
    given = {key: tuple(value) if isinstance(value, list) else value for key, value in SMALL[name].items()}
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    model = getattr(sb3, name)("MlpPolicy", env, seed=3, device="cpu", **given)
    model.learn(EPISODES * H, callback=StopTrainingOnMaxEpisodes(EPISODES))
    torch.set_num_threads(threads)
    assert returns.tolist() == env.returns[:EPISODES]
    if name in ("PPO", "A2C"):  # the callback keeps the others from learning from the last step
        assert same(parameters(peer.model), parameters(model))


@pytest.mark.parametrize("name", sorted(SMALL))
def test_equal_runs(name):
    one, returns = trained(name)
    np.random.seed(0)
    torch.manual_seed(0)
    other, again = trained(name, seconds=0.0)
    assert np.array_equal(returns, again) and same(parameters(one.model), parameters(other.model))
    assert one.model._n_updates > 0
    assert not np.array_equal(trained(name, seed=4)[1], returns)


@pytest.mark.parametrize("name", ["A2C", "SAC"])
def test_files_and_values(name, tmp_path):
    peer, _ = trained(name)
    peer.save(tmp_path / "a.krl")
    env = make(name)
    value = peer.evaluate(env, 40, seed=2)
    again = peers.load(tmp_path / "a.krl")
    assert np.array_equal(again.evaluate(env, 40, seed=2).returns, value.returns)
    assert same(parameters(again.model), parameters(peer.model))
    x, _ = env.reset(seed=int(episode_seed(2, FIRST + 1)))
    total, done, h = 0.0, False, 0
    while not done:
        seen = np.append(x, h / peer.horizon).astype(np.float32)
        x, reward, terminated, truncated, _ = env.step(peer.model.predict(seen, deterministic=True)[0])
        total, done, h = total + float(reward), terminated or truncated, h + 1
    assert total == pytest.approx(value.returns[1], rel=1e-3)  # a batch may be rounded differently


def test_discrete_states_and_other_policies():
    peer = build_any(AgentEntry(label="it", agent="sb3:DQN", buffer_size=1000, time_aware=False))
    env = gym.make("FrozenLake-v1", max_episode_steps=20)
    training = Training(peer, env, 0, 3)
    assert len(training.play(1000.0)) == 3 and peer.model.observation_space.shape == (16,)
    training.close()
    kwargs = {"net_arch": [8], "activation_fn": "torch.nn:ReLU"}
    noise = {"name": "stable_baselines3.common.noise:NormalActionNoise", "mean": [0.0], "sigma": [0.1]}
    peer, _ = trained("TD3", policy_kwargs=kwargs, action_noise=noise)
    assert peer.model.action_noise is not None and "ReLU" in repr(peer.model.policy)
    assert parameters(peer.model)["actor.mu.0.weight"].shape == (8, 4)


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"n_steps": 1}, "rejects these hyper-parameters: .*n_steps"),
        ({"policy": "MlpPolicie"}, "rejects these hyper-parameters: .*MlpPolicie"),
        ({"policy_kwargs": {"arch": [8]}}, "rejects these hyper-parameters: .*'arch'"),
    ],
)
def test_what_the_library_rejects(given, words):
    peer = build_any(AgentEntry(label="it", agent="sb3:PPO", **given))
    with pytest.raises(ValueError, match=words):
        peer.get_ready(make("PPO"))


def test_an_experiment(tmp_path):
    """In worker processes, and the same as in this one."""
    agents = RANDOM + '\n[[agents]]\nlabel = "peer"\nagent = "sb3:PPO"\nn_steps = 64\n'
    file = write_toml(tmp_path / "a.toml", agents, episodes=8, seeds=1)
    assert experiments.run(file, tmp_path / "out", workers=1).finished
    found = table(tmp_path / "out").filter(label="peer")
    peer = build_any(AgentEntry(label="it", agent="sb3:PPO", n_steps=64))
    env = gym.make("kernelrl/TwinRooms-v0", goal=[0.3, 0.3], radius=0.3)
    assert Training(peer, env, 0, 8).play(1000.0).returns.tolist() == found["return"].to_list()
    run = next(run for run in experiments.open_store(tmp_path / "out").runs() if run.label == "peer")
    assert same(parameters(peer.model), {k: v.numpy() for k, v in run_model(run, env).policy.state_dict().items()})
    assert run.record["versions"]["torch"] == torch.__version__
    wrong = write_toml(tmp_path / "b.toml", agents.replace("PPO", "TD3").replace("n_steps = 64", ""))
    with pytest.raises(ExperimentError, match='agents "peer": action_space: TD3 needs Box actions'):
        experiments.run(wrong, tmp_path / "no")


def run_model(run, env):
    agent = run.agent()
    agent.get_ready(env)
    return agent.model


@pytest.mark.parametrize("several", [False, True])
def test_its_own_evaluation_takes_our_agents(several):
    """`evaluate_policy` calls `predict` with the step as the state; values are those of `evaluate`, but for chance."""
    from stable_baselines3.common.evaluation import evaluate_policy
    from stable_baselines3.common.vec_env import DummyVecEnv

    agent = krl.GreedyUCBVI(bins=8, bonus_scale=0.01)
    agent.fit("kernelrl/SquareWorld-v0", 300, seed=0, progress=False)

    def make():
        return gym.make("kernelrl/SquareWorld-v0")

    env = DummyVecEnv([make, make, make]) if several else make()
    mean, deviation = evaluate_policy(agent, env, n_eval_episodes=30, warn=False)
    expected = agent.evaluate(make(), 200)
    assert mean == pytest.approx(expected.mean, abs=5 * (deviation + expected.returns.std()) / np.sqrt(30) + 0.01)
    assert expected.mean > 0.5

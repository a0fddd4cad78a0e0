"""Stands in for Stable-Baselines3 where it is not installed: the same form, and a policy that changes at random.

Like the original it owns the loop, draws from NumPy's shared generator and resets the environment after each episode.
"""

import numpy as np
import torch

__version__ = "0.0-stand-in"


class Policy:
    def __init__(self, inputs, outputs):
        self.weights = np.random.normal(size=(inputs, outputs))

    def state_dict(self):
        return {"weights": torch.Tensor(self.weights)}

    def load_state_dict(self, states):
        if states["weights"].numpy().shape != self.weights.shape:
            raise RuntimeError("size mismatch for weights")
        self.weights = states["weights"].numpy()


class Algorithm:
    def __init__(
        self, policy, env, learning_rate=0.1, n_steps=8, train_freq=1, noise=None, policy_kwargs=None, seed=None,
        device="auto", _init_setup_model=True,
    ):  # fmt: skip
        assert n_steps > 1, f"n_steps must be greater than 1, got {n_steps}"
        np.random.seed(seed)
        self.policy_name, self.env, self.rate, self.noise = policy, env, learning_rate, noise
        self.train_freq, self.policy_kwargs, self.device = train_freq, policy_kwargs, device
        self.discrete = hasattr(env.action_space, "n")
        outputs = int(env.action_space.n) if self.discrete else env.action_space.shape[0]
        self.policy = Policy(env.observation_space.shape[0], outputs)
        self.total = None

    def learn(self, total_timesteps):
        self.total = total_timesteps
        observation, _ = self.env.reset(seed=77)
        for _ in range(total_timesteps):
            action, _ = self.predict(observation + 0.1 * np.random.normal(size=observation.shape))
            observation, reward, terminated, truncated, _ = self.env.step(action)
            self.policy.weights += self.rate * (reward - 0.5) * np.random.normal(size=self.policy.weights.shape)
            if terminated or truncated:
                observation, _ = self.env.reset()

    def predict(self, observation, deterministic=False):
        scores = np.tanh(np.asarray(observation, float) @ self.policy.weights)
        return (scores.argmax(axis=-1) if self.discrete else scores), None


class A2C(Algorithm):
    pass


class DQN(Algorithm):
    pass


class PPO(Algorithm):
    pass


class SAC(Algorithm):
    pass


class TD3(Algorithm):
    pass

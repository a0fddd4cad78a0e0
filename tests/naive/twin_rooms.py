"""TwinRooms in plain NumPy, with the numbers written out."""

import numpy as np

MOVES = np.array([[0.1, 0.0], [-0.1, 0.0], [0.0, 0.1], [0.0, -0.1]])  # right, left, up, down
STARTS = np.array([[0.1, 0.1], [1.1, 0.1]])
GOALS = np.array([[0.8, 0.8], [1.8, 0.8]])
LOW = np.array([[0.0, 0.0], [1.05, 0.0]])
HIGH = np.array([[0.95, 1.0], [2.0, 1.0]])


def room_of(x):
    return 0 if x[0] < 1 else 1


def reward(x):
    return max(0.0, 1.0 - np.linalg.norm(x - GOALS[room_of(x)]) / 0.1)


def move(x, a, noise):
    """The next state when the two standard normal deviates are `noise`."""
    room = room_of(x)
    return np.clip(x + MOVES[a] + 0.01 * np.asarray(noise), LOW[room], HIGH[room])


def trajectory(stream, actions):
    """States (T+1, 2) and rewards (T,) of one episode driven by a `naive.stream.Stream`."""
    x = STARTS[0 if stream.uniform() < 0.5 else 1]
    states, rewards = [x], []
    for a in actions:
        rewards.append(reward(x))
        x = move(x, a, (stream.normal(), stream.normal()))
        states.append(x)
    return np.array(states), np.array(rewards)

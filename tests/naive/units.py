"""Units of reward: a range taken from the rewards seen, 0 included, and what a value is in the range after it."""

from __future__ import annotations


class Units:
    """Rewards of [low, high] are mapped to [0, 1]; [0, 1] stands in while only 0 has been seen."""

    def __init__(self, H, low=0.0, high=0.0):
        self.H, self.seen = H, (low, high)
        self.empty = low == high == 0.0
        self.low, self.high = (0.0, 1.0) if self.empty else (low, high)
        self.width = self.high - self.low

    @property
    def nothing(self):
        """What a reward of 0 is mapped to."""
        return self.mapped(0.0)

    def mapped(self, r):
        return (r - self.low) / self.width

    def with_rewards(self, rewards, terminated):
        """The units after an episode with these rewards, or None if they stay the same.

        If all rewards so far are costs, and a whole episode cost nothing, the largest cost is as high as a reward.
        """
        low, high = min(self.seen[0], *rewards), max(self.seen[1], *rewards)
        if low < 0.0 and high == 0.0 and self.seen[0] < 0.0 and rewards == [0.0] * self.H and not terminated:
            high = -low
        return None if (low, high) == self.seen else Units(self.H, low, high)

    def reward(self, r, new):
        """A mapped reward in the new units."""
        return new.mapped(r * self.width + self.low)

    def value(self, v, h, new):
        """A mapped value of step h in the new units: in the environment's, (H-h)·(rise of the upper end) is added.

        Before the first range, both ends are 0 and so are all values.
        """
        steps = self.H - h
        own, rise = v * self.width + self.low * steps, new.high - self.high
        if self.empty:
            own, rise = 0.0, new.high
        return (own + steps * rise - new.low * steps) / new.width

    def q_value(self, v, h, new):
        """The same for Q-learning, where values from rewards of 0 stay: they are those of any range [0, x]."""
        return v if self.empty and new.low == 0.0 else self.value(v, h, new)

    def learnt(self, r):
        """What Q-learning takes a reward for: while the range is empty, one above 0 for the best there is."""
        return float(r > 0.0) if self.empty else self.mapped(r)

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

    def with_rewards(self, rewards):
        """The units after these rewards, or None if they stay the same."""
        low, high = min(self.seen[0], *rewards), max(self.seen[1], *rewards)
        return None if (low, high) == self.seen else Units(self.H, low, high)

    def reward(self, r, new):
        """A mapped reward in the new units."""
        return new.mapped(r * self.width + self.low)

    def value(self, v, h, new):
        """A mapped value of step h in the new units: in the environment's, (H-h)·(rise of the upper end) is added.

        A value from rewards of 0 alone is one of the range [0, x] for any x, so it is taken for one of [0, new.high].
        """
        steps = self.H - h
        if self.empty:
            own, rise = v * new.high, 0.0
        else:
            own, rise = v * self.width + self.low * steps, new.high - self.high
        return (own + steps * rise - new.low * steps) / new.width

"""Simulated episodes without representatives, in which plans to deploy are compared.

A plan on representatives is the best policy for a motion between representatives. Where these are coarse, that motion
is not the true one, and a plan can be good for the former only. So the policies of several plans play episodes that
are made of samples, and of straight lines through them. An episode begins at the first state of a logged one. At an
embedded state u an action a does what one of the samples (x_i, a, r_i, y_i) near u did:

    i is drawn from the samples nearest to u (`nearest_of`) with probability w_i/Σw
    the reward is r_i
    the episode ends if sample i ended its own
    otherwise the next state is z_i, where its step leads from u, moved into the box of all states seen

with the weights w of `kernelrl.stores.slopes`, and lines through those of the samples that did not end an episode. What
an episode returns is, as in plans, in mapped units (`kernelrl.stores.units`): the sum of m(r_i), and m(0) for each step
after its end. An action that was never tried ends it, with nothing for the steps that are left. All policies have the
same first states and the same random numbers, so their returns can be compared one by one.

This is for pooled data whose rewards do not depend on the step.
"""

from typing import NamedTuple

import numpy as np

from kernelrl.geometry.masks import drop_at_place, restricts
from kernelrl.jit.compile import compiled, inner
from kernelrl.jit.handles import hand_over
from kernelrl.planning.interface import q_at
from kernelrl.planning.sides import DEPLOYED
from kernelrl.stores.log import first_rows
from kernelrl.stores.own_steps import MOST, coordinates, nearest_of
from kernelrl.stores.samples import FROM, LOGGED, STEP, TERMINATED, TO
from kernelrl.stores.slopes import fit_slopes, new_fit, shift, weigh

__all__ = ["Rehearsal", "better_than"]

EPISODES, FEWEST, STEPS = 64, 8, 32_000  # at most so many episodes, but fewer if they would have more steps in all
EQUAL = 1e-9  # values that differ by less are equal: the first of such actions is taken
SURE = 0.5  # standard errors


class Samples(NamedTuple):
    """All logged transitions."""

    x: np.ndarray  # (n, wide) embedded states, and related actions as coordinates
    y: np.ndarray  # (n, places) next states
    ended: np.ndarray  # (n,) whether the episode ended there
    low: np.ndarray  # (places,) of all states
    high: np.ndarray


@compiled
def choose_actions(planned, states, h, q, actions):
    """Write the best action of a plan at each of the embedded `states` (n, places) into `actions` (n,)."""
    settings = planned.settings
    for i in range(actions.size):
        q_at(planned.plan, settings, planned.store, DEPLOYED, states[i], h, q)
        if restricts(settings.mask):
            drop_at_place(settings, states[i], q)
        best = -np.inf
        for a in range(q.size):
            best = max(best, q[a])
        actions[i] = 0
        while not q[actions[i]] >= best - EQUAL:
            actions[i] += 1


@inner
def drawn(w, total, coin):
    """The first index at which the sum of `w` exceeds the share `coin`, in [0, 1), of its total."""
    i, left = 0, coin * total - w[0]
    while left >= 0.0 and i + 1 < w.size:
        i += 1
        left -= w[i]
    return i


@compiled
def follow_samples(samples, moves, fit, here, start, index, coins, going, chosen, after):
    """Draw a sample near each of the points `here` (n, wide), into `chosen` (n,); follow it, into `after` (n, places).

    The samples near point i are entries start[i] to start[i + 1] of `index`. `going` (most samples,) is scratch.
    """
    for i in range(chosen.size):
        near = index[start[i] : start[i + 1]]
        total = weigh(here[i], samples.x, near, -1, fit.w)
        t = chosen[i] = near[drawn(fit.w[: near.size], total, coins[i])]
        n = 0
        for s in near:
            if not samples.ended[s]:
                going[n] = s
                n += 1
        fit_slopes(fit, here[i], samples.x, samples.y, going[:n], -1, moves.keeps)
        shift(fit, here[i], samples.x[t], samples.y[t], moves.keeps, moves.bends, after[i])
        for j in range(after.shape[1]):
            after[i, j] = min(max(after[i, j], samples.low[j]), samples.high[j])


class Rehearsal:
    """Episodes with fixed first states and random numbers, which policies of plans can play."""

    def __init__(self, settings, log, moves):
        """`moves` is the `Displacement` by which steps resemble each other."""
        x, y, self._actions = coordinates(settings, log, moves)
        n, places = int(log.number[LOGGED]), y.shape[1]
        both = np.concatenate([x[:, :places], y])
        ended = log.labels[TERMINATED, :n] != 0
        self._samples = Samples(x, y, ended, both.min(axis=0), both.max(axis=0))
        self._settings, self._moves, self._fit = settings, moves, new_fit(MOST, x.shape[1], places)
        self._rewards = (log.reward[:n] - settings.units.low) * settings.units.factor
        self._trees = {}
        rng, H = np.random.default_rng((n, settings.horizon)), settings.horizon  # the same whenever the data are
        episodes = max(FEWEST, min(EPISODES, STEPS // H))
        first = first_rows(log.states[FROM, :n], log.states[TO, :n], ended, log.labels[STEP, :n])
        self._first = x[rng.choice(first, episodes), :places]
        self._coins = rng.random((H, episodes))

    def returns(self, planned):
        """(episodes,) what the policy of a plan collects in each episode, in mapped units."""
        handle, H, nothing = hand_over(planned), self._settings.horizon, self._settings.units.nothing
        states, total, playing = self._first.copy(), np.zeros(len(self._first)), np.arange(len(self._first))
        q = np.zeros(self._settings.actions)
        for h in range(H):
            if not playing.size:
                break
            actions = np.zeros(len(playing), np.int64)
            choose_actions(handle, states[playing], h, q, actions)
            going = []
            for a in np.unique(actions):
                who = playing[actions == a]
                chosen, after = self._follow(a, states[who], self._coins[h, who])
                if chosen is None:
                    continue
                ended = self._samples.ended[chosen]
                total[who] += self._rewards[chosen] + np.where(ended, nothing * (H - h - 1), 0.0)
                states[who] = after
                going.append(who[~ended])
            playing = np.sort(np.concatenate(going)) if going else playing[:0]
        return total

    def _follow(self, a, states, coins):
        """The samples drawn at `states` (m, places), (m,), and where they lead, (m, places); None without samples."""
        tree, mine = self._tree(a)
        if tree is None:
            return None, None
        places = self._moves.action_places[a]
        here = np.hstack([states, np.tile(places, (len(states), 1))])
        near = [np.sort(mine[found]) for found in nearest_of(tree, here)]
        start, index = np.cumsum([0, *map(len, near)]), np.concatenate(near)
        chosen, after = np.zeros(len(states), np.int64), np.zeros(states.shape)
        going = np.zeros(MOST, np.int64)
        follow_samples(self._samples, self._moves, self._fit, here, start, index, coins, going, chosen, after)
        return chosen, after

    def _tree(self, a):
        """A tree of the samples that count for action `a`, and their numbers; related actions share one."""
        from scipy.spatial import KDTree  # takes long to import

        related = self._moves.action_places.shape[1] > 0
        key = -1 if related else int(a)
        if key not in self._trees:
            mine = np.arange(len(self._actions)) if related else np.flatnonzero(self._actions == a)
            self._trees[key] = KDTree(self._samples.x[mine]) if mine.size else None, mine
        return self._trees[key]


def better_than(usual, others):
    """Which of `others`, each (episodes,), returns most; None if none is above `usual` by SURE standard errors."""
    best, gain = None, 0.0
    for i, returns in enumerate(others):
        more = returns - usual
        if more.mean() > max(gain, SURE * more.std(ddof=1) / np.sqrt(len(more))):
            best, gain = i, more.mean()
    return best

"""The policy to deploy, planned over buckets, against backward induction in plain NumPy."""

from __future__ import annotations

import math

import numpy as np
import pytest
from numpy.testing import assert_allclose

from kernelrl.geometry.buckets import WIDTH
from kernelrl.planning import full as module
from kernelrl.planning import node_sums
from kernelrl.planning.full import InPieces, new_full
from kernelrl.planning.reading import read_q
from kernelrl.planning.sides import DEPLOYED
from kernelrl.stores.interface import add, grown_for
from kernelrl.stores.samples import new_samples
from naive import kernels, metrics
from naive.deployed import NaiveDeployed
from naive.estimates import argmax_set
from pools import BETA, SIGMA, make_settings
from problems import random_log

H, A = 4, 3


def action(deployed, x, h):
    return int(read_q(deployed, DEPLOYED, x[None], h)[0].argmax())


def planned(monkeypatch, stationary, transitions=150, seed=0, d=2, block=1000, by_nodes=False):
    monkeypatch.setattr(node_sums, "PER_LIST", 0 if by_nodes else math.inf)
    log = random_log(np.random.default_rng(seed), H=H, A=A, d=d, transitions=transitions, endings=0.4)
    settings = make_settings("gaussian", "euclidean", d, horizon=H, actions=A, stationary=stationary)
    samples = new_samples(d, 16)
    naive = NaiveDeployed(H, A, SIGMA, BETA, kernels.gaussian, metrics.euclidean, stationary)
    for t in log.transitions:
        samples = grown_for(samples, None, 1)
        add(samples, None, t.x, t.a, t.r, t.y, t.h, t.terminated)
        naive.observe(*t)
    deployed = new_full(settings, samples, np.zeros(d), np.ones(d), 0.3, False)
    assert samples.number[0] == len(log.transitions) == deployed.plan.slot.size
    monkeypatch.setattr(module, "BLOCK", block)
    assert (deployed.plan.at_nodes.nodes.sums.size > 0) == (by_nodes and d == 2)
    return log, InPieces(deployed).plan(DEPLOYED), naive


@pytest.mark.parametrize("by_nodes", [False, True])
@pytest.mark.parametrize("d", [1, 2])
@pytest.mark.parametrize("stationary", [True, False])
def test_targets_beside_the_samples(stationary, d, by_nodes, monkeypatch):
    log, deployed, naive = planned(monkeypatch, stationary, d=d, block=40, by_nodes=by_nodes)
    for i, t in enumerate(log.transitions):
        slot = deployed.plan.slot[i]
        for h in range(H) if stationary else [t.h]:
            following = 0.0 if h + 1 == H or t.terminated else naive.q_values([t.y], h + 1)[0].max()
            found = deployed.plan.G[h if stationary else 0, slot // WIDTH, slot % WIDTH]
            assert_allclose(found, t.r + following, rtol=1e-11)


@pytest.mark.parametrize("by_nodes", [False, True])
@pytest.mark.parametrize("stationary", [True, False])
def test_actions(stationary, by_nodes, monkeypatch):
    log, deployed, naive = planned(monkeypatch, stationary, transitions=400, by_nodes=by_nodes)
    states = np.concatenate([log.states()[:40], np.random.default_rng(1).random((20, 2))])
    taken = set()
    for h in range(H):
        q = naive.q_values(states, h)
        for x, row in zip(states, q, strict=True):
            a = action(deployed, x, h)
            assert a in argmax_set(row)
            taken.add(int(a))
    assert taken == set(range(A))  # or the test would see little


def test_how_the_work_is_cut_is_of_no_consequence(monkeypatch):
    _, whole, _ = planned(monkeypatch, True)
    _, pieces, _ = planned(monkeypatch, True, block=7)
    assert np.array_equal(whole.plan.G, pieces.plan.G)


def test_nothing_is_worth_nothing():
    """An untried action counts for 0 and not less, and ties go to the lowest index."""
    settings = make_settings("gaussian", "euclidean", 1, horizon=1, actions=A)
    samples = new_samples(1, 4)
    for a, r in ((1, 0.0), (2, 0.5)):
        empty = new_full(settings, samples, np.zeros(1), np.ones(1), 0.2, False)
        assert action(empty, np.array([0.5]), 0) == 0
        add(samples, None, np.array([0.5]), a, r, np.array([0.5]), 0, False)
    full = new_full(settings, samples, np.zeros(1), np.ones(1), 0.2, False)
    assert action(full, np.array([0.5]), 0) == 2

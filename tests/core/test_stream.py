"""The random stream against the same generators in Python's own integers, and against what it promises."""

import numpy as np
import pytest
from scipy import stats

import kernelrl as krl
from kernelrl.jit.compile import compiled
from kernelrl.jit.stream import episode_seed, index_below, mix, new_stream, next_bits, normal, seed_stream, uniform
from naive import stream as naive

SEEDS = [0, 1, 1234567, 2**31 - 1, 2**63 - 1]
N = 20_000


def draw(function, *arguments, seed=0, n=N):
    stream = new_stream(seed)
    return np.array([function(stream, *arguments) for _ in range(n)])


def test_naive_generators_give_the_published_numbers():
    assert naive.splitmix64(1234567, 3) == [6457827717110365317, 3203168211198807973, 9817491932198370423]
    stream = naive.Stream([1, 2, 3, 4])
    assert [stream.bits() for _ in range(4)] == [41943041, 58720359, 3588806011781223, 3591011842654386]


@pytest.mark.parametrize("seed", [*SEEDS, 2**64 - 1])
def test_seeding_and_bits(seed):
    stream, expected = new_stream(seed), naive.Stream.seeded(seed)
    assert stream.dtype == np.uint64
    assert [int(word) for word in stream] == expected.s
    assert [int(next_bits(stream)) for _ in range(100)] == [expected.bits() for _ in range(100)]
    assert [int(word) for word in stream] == expected.s


def test_seeding_forgets_what_was_before():
    stream = new_stream(5)
    next_bits(stream)
    seed_stream(stream, np.int64(7))
    assert np.array_equal(stream, new_stream(7))


def test_mix_is_a_bijection_on_what_we_try():
    words = [int(mix(np.uint64(z))) for z in range(1000)]
    assert words == [naive.mix(z) for z in range(1000)]
    assert len(set(words)) == 1000


@pytest.mark.parametrize("seed", SEEDS)
def test_deviates_are_those_of_the_naive_stream(seed):
    stream, expected = new_stream(seed), naive.Stream.seeded(seed)
    for _ in range(50):
        assert uniform(stream) == expected.uniform()
        assert normal(stream) == pytest.approx(expected.normal(), rel=1e-14)
        assert index_below(stream, 7) == expected.index_below(7)
    assert [int(word) for word in stream] == expected.s  # all drew as many words


def test_uniform_fills_the_unit_interval():
    u = draw(uniform)
    assert u.min() >= 0.0 and u.max() < 1.0
    assert u.min() < 1e-3 and u.max() > 1 - 1e-3
    assert abs(u.mean() - 0.5) < 4 * np.sqrt(1 / 12 / N)
    assert stats.kstest(u, "uniform").pvalue > 1e-3


def test_normal_moments_and_distribution():
    z = draw(normal)
    assert abs(z.mean()) < 4 / np.sqrt(N)
    assert abs(z.var() - 1) < 4 * np.sqrt(2 / N)
    assert abs((z**3).mean()) < 4 * np.sqrt(15 / N)
    assert abs((z**4).mean() - 3) < 4 * np.sqrt(96 / N)
    assert abs((z[1:] * z[:-1]).mean()) < 4 / np.sqrt(N)  # neighbours are independent
    assert stats.kstest(z, "norm").pvalue > 1e-3
    assert stats.kstest(1.1 * z, "norm").pvalue < 1e-3  # the test has the power to fail


@pytest.mark.parametrize("n", [1, 2, 7, 100])
def test_index_below_is_uniform(n):
    counts = np.bincount(draw(index_below, n), minlength=n)
    assert counts.size == n and counts.min() > 0
    if n > 1:
        assert stats.chisquare(counts).pvalue > 1e-3


@pytest.mark.parametrize("n", [1, 3, 7, 10**6 + 1])
def test_the_largest_word_stays_below_the_upper_end(n):
    words = np.array([0, 1, 2, 2**64 - 1], np.uint64)  # rotl(s0 + s3, 23) + s0: the next word is all ones
    assert uniform(words.copy()) == 1.0 - 2.0**-53
    assert index_below(words.copy(), n) == n - 1


def test_episode_seeds_agree_with_naive_and_fit_31_bits():
    for seed in SEEDS:
        for k in (0, 1, 2, 10**6):
            found = episode_seed(seed, k)
            assert found == naive.episode_seed(seed, k)
            assert 0 <= found < 2**31


def test_episode_seeds_are_distinct_and_spread():
    found = np.array([episode_seed(seed, k) for seed in range(10) for k in range(200)])
    assert np.unique(found).size == found.size
    assert stats.kstest(found / 2**31, "uniform").pvalue > 1e-3


# ----------------------------------------------------------------------------------------------------- the public names


@compiled
def in_compiled_code(stream, seed, out):
    krl.random.seed_stream(stream, seed)
    for i in range(out.shape[0]):
        out[i, 0] = krl.random.uniform(stream)
        out[i, 1] = krl.random.normal(stream)
        out[i, 2] = krl.random.index_below(stream, 5)


def test_public_names_in_compiled_code_and_from_python():
    """The same draws; without the JIT, both are Python."""
    stream, out = np.zeros(4, np.uint64), np.zeros((50, 3))
    in_compiled_code(stream, 9, out)
    expected, from_python = naive.Stream.seeded(9), np.zeros(4, np.uint64)
    krl.random.seed_stream(from_python, 9)
    for u, z, i in out:
        assert krl.random.uniform(from_python) == u == expected.uniform()
        assert krl.random.normal(from_python) == z == pytest.approx(expected.normal(), rel=1e-14)
        assert krl.random.index_below(from_python, 5) == i == expected.index_below(5)
    assert np.array_equal(stream, from_python)
    assert sorted(krl.random.__all__) == ["index_below", "normal", "seed_stream", "uniform"]

"""Random numbers for compiled code, such as a user's own environment.

A stream is an array `uint64[4]`. The same functions run inside compiled functions, when Python calls them, and with the
JIT disabled, and draw the same numbers everywhere:

    stream = np.zeros(4, np.uint64)
    krl.random.seed_stream(stream, 7)       # any seed makes a good stream; one of zeros only is none
    krl.random.uniform(stream)              # in [0, 1)
    krl.random.normal(stream)               # mean 0, standard deviation 1
    krl.random.index_below(stream, 6)       # 0 … 5

`advance(env, stream, …)` gets the stream of its episode; draw from no other, and an episode is a function of its seed.
"""

from kernelrl.jit.stream import index_below, normal, seed_stream, uniform

__all__ = ["index_below", "normal", "seed_stream", "uniform"]

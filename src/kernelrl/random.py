"""Random numbers for compiled code, such as a user's own environment.

A stream is an array `uint64[4]`. The same functions run inside compiled functions, when Python calls them, and with the
JIT disabled, and draw the same numbers everywhere:

    stream = np.zeros(4, np.uint64)
    krl.random.seed_stream(stream, 7)       # any seed will do; an unseeded stream of zeros will not
    krl.random.uniform(stream)              # in [0, 1)
    krl.random.normal(stream)               # mean 0, standard deviation 1
    krl.random.index_below(stream, 6)       # 0 … 5

`advance(env, stream, …)` receives the stream of its episode. Draw from no other: then its seed determines an episode.
"""

from kernelrl.jit.stream import index_below, normal, seed_stream, uniform

__all__ = ["index_below", "normal", "seed_stream", "uniform"]

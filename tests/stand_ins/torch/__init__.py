"""Stands in for PyTorch where it is not installed: what `kernelrl.peers` uses of it."""

__version__ = "0.0-stand-in"
_STATE = {"threads": 4, "draws": 0}


class Tensor:
    def __init__(self, array):
        self.array = array

    def cpu(self):
        return self

    def numpy(self):
        return self.array


from_numpy = Tensor


def get_num_threads():
    return _STATE["threads"]


def set_num_threads(threads):
    _STATE["threads"] = threads


def get_rng_state():
    return _STATE["draws"]


def set_rng_state(state):
    _STATE["draws"] = state

"""The beginning of a program that notes in `compiled` which functions numba compiles."""

LISTEN = """
from numba.core import event

compiled = []

class Listener(event.Listener):
    def on_start(self, event):
        compiled.append(event.data["dispatcher"].py_func.__qualname__)

    def on_end(self, event):
        pass
"""

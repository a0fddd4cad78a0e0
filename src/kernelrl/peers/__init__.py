"""Agents of another library, Stable-Baselines3, in experiments: `agent = "sb3:PPO"`.

    library    the library, if it is installed, and which of its algorithms can be named
    options    the constructor's keyword arguments, as tables in an experiment's file
    world      the environment as the library sees it: H steps, observations with the time, seeds of episodes
    peer       `Peer`: one such agent: made, evaluated, saved
    turns      two threads of which one runs at a time, so that the library's own loop can be paused
    training   one run of the library's loop, in pieces

The library is an extra, `pip install 'kernelrl[peers]'`. It is imported when the first such agent is made.
"""

from kernelrl.peers.peer import Peer, load

__all__ = ["Peer", "load"]

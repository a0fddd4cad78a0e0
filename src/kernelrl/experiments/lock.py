"""One run at a time on a folder.

The lock belongs to the operating system (`flock`), so it is released when its holders end, in whatever way. Workers
inherit it: if their parent is killed, they keep the folder until they have stored their runs. The file's content only
says who holds the lock.
"""

from __future__ import annotations

import json
import os
import socket
import time
from pathlib import Path
from types import TracebackType

from kernelrl.console import say
from kernelrl.experiments.config import ExperimentError

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]

__all__ = ["FolderLock"]

WAIT_SECONDS = 60.0  # for workers whose parent was killed


class FolderLock:
    """A context that holds the lock on `folder`; an error names another holder."""

    def __init__(self, folder: Path) -> None:
        self._path = folder / ".lock"
        self.handle = -1
        """The file descriptor, for workers to inherit."""

    def __enter__(self) -> FolderLock:
        if fcntl is None:
            raise ExperimentError(
                "experiments need locks of files (flock), which this system does not have; on Windows use WSL. Agents "
                "work without: fit, evaluate, save and load"
            )
        self.handle = os.open(self._path, os.O_RDWR | os.O_CREAT, 0o644)
        try:
            self._take()
            os.ftruncate(self.handle, 0)
            os.pwrite(self.handle, json.dumps({"pid": os.getpid(), "host": socket.gethostname()}).encode(), 0)
        except BaseException:
            os.close(self.handle)
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        os.close(self.handle)

    def _take(self) -> None:
        deadline, said = time.monotonic() + WAIT_SECONDS, False
        while True:
            try:
                return fcntl.flock(self.handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                holder = self._holder()
            if time.monotonic() > deadline or (holder and (holder[1] != socket.gethostname() or is_alive(holder[0]))):
                who = f"process {holder[0]} on {holder[1]}" if holder else "a process that has not said its name"
                raise ExperimentError(
                    f"{self._path.parent} is in use by another run, {who}; wait for it to end, or choose another "
                    "folder with --out"
                )
            if holder and not said:
                say(f"Waiting for workers that process {holder[0]} left behind to store their runs …")
                said = True
            time.sleep(0.1)

    def _holder(self) -> tuple[int, str] | None:
        try:
            content = json.loads(os.pread(self.handle, 4096, 0))
            return int(content["pid"]), str(content["host"])
        except (ValueError, KeyError, TypeError):  # the lock was just taken and the file is not written yet
            return None


def is_alive(pid: int) -> bool:
    """Whether a process with that number runs on this machine."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True

"""Two threads of which one runs at a time.

The library learns in a loop of its own, which a caller cannot leave and enter again without a change of the results. So
it runs in a second thread, which waits while the caller works, and the caller waits while it runs.
"""

from __future__ import annotations

import threading
from collections.abc import Callable

__all__ = ["Enough", "Turns"]

PATIENCE = 10.0  # seconds in which the work must notice that it should end


class Enough(BaseException):
    """Ends the work; nobody reports it."""


class Turns:
    """`work`, in a thread of its own, a turn at a time."""

    def __init__(self, work: Callable[[], None]) -> None:
        self._work = work
        self._mine, self._yours = threading.Semaphore(0), threading.Semaphore(0)
        self._ending, self.ended = False, False
        self._error: BaseException | None = None
        self._thread = threading.Thread(target=self._run, daemon=True)

    def _run(self) -> None:
        try:
            self._wait()
            self._work()
        except Enough:
            pass
        except BaseException as error:  # raised again where someone waits for it
            self._error = error
        self.ended = True
        self._yours.release()

    def _wait(self) -> None:
        self._mine.acquire()
        if self._ending:
            raise Enough

    def resume(self) -> None:
        """Let the work go on until it calls `pause` or ends; what it raises is raised here."""
        if self.ended:
            raise RuntimeError("the work has ended")
        if self._thread.ident is None:
            self._thread.start()
        self._mine.release()
        self._yours.acquire()
        if self._error is not None:
            raise self._error

    def pause(self) -> None:
        """Called by the work: wait for the next turn."""
        self._yours.release()
        self._wait()

    def close(self) -> None:
        """End the work where it waits; if it runs (a caller was interrupted), at its next pause."""
        self._ending = True
        if self._thread.ident is not None:
            self._mine.release()
            self._thread.join(PATIENCE)

"""What a part of the soak has found."""

from __future__ import annotations

import dataclasses
import traceback
from typing import Any


@dataclasses.dataclass
class Outcome:
    """Numbers of what was tried by name, and what went wrong, in words.

    `failed` are crashes, hangs and errors other than those documented; `lost` is what was there and is not any more,
    or is not what it would be without the disturbance.
    """

    tried: dict[str, Any] = dataclasses.field(default_factory=dict)
    failed: list[str] = dataclasses.field(default_factory=list)
    lost: list[str] = dataclasses.field(default_factory=list)

    def count(self, what: str, number: int = 1) -> None:
        """So many more were tried."""
        self.tried[what] = self.tried.get(what, 0) + number

    def check(self, holds: Any, words: str) -> None:
        """Something is lost unless `holds`."""
        if not holds:
            self.lost.append(words)

    def attempt(self, words: str, function: Any, *arguments: Any) -> None:
        """Call a function that checks something: an assertion that fails is a loss, another error a failure."""
        try:
            function(*arguments)
        except AssertionError:
            self.lost.append(f"{words}: {last_lines()}")
        except BaseException as error:
            if isinstance(error, SystemExit | GeneratorExit):
                raise
            self.failed.append(f"{words}: {last_lines()}")


def last_lines() -> str:
    """The end of the traceback of the error that is being handled."""
    return traceback.format_exc()[-1500:]

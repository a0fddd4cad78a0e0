"""The file of a saved agent: a zip of a JSON header and NumPy arrays. Nothing in a file is trusted when it is read.

Equal contents make equal bytes: entries have a fixed order and date. Only expected entries are read, and sizes are
checked first: an entry's declared size must be that of its array, and all arrays together must fit into memory.
"""

from __future__ import annotations

import contextlib
import io
import json
import math
import os
import zipfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import IO, Any

import numpy as np
import numpy.typing as npt

from kernelrl.agents.files import as_path, replacing
from kernelrl.geometry.buckets import available_memory

__all__ = [
    "BEFORE", "FORMAT", "RIGS", "Archive", "ArgumentError", "FileError", "Refused", "is_agent", "open_archive",
    "write_file",
]  # fmt: skip

FORMAT = 9
EARLIER = {
    1: "whose values were in other units",
    2: "which wrote hyper-parameters in another form",
    3: "which did not keep the rewards of each step together",
    4: "which knew Discrete actions only",
    5: "which planned from scratch each time",
    6: "which stored the cells of representatives",
    7: "which kept no sums at nodes",
    8: "whose bonus did not follow the data",
}
HEADER = "kernelrl.json"
BEFORE = "before/"  # begins the names of arrays of an agent before its open episode; no name of a field has a slash
RIGS = "rigs/"  # the same for several open episodes
MOST_HEADER = 2**20  # bytes
MOST_ENTRIES = 1000
EXAMPLE = "agent.krl"
PREAMBLE = 2**16  # enough bytes for the type and shape of an array


def write_file(path: str | os.PathLike[str], header: dict[str, Any], arrays: Mapping[str, npt.NDArray[Any]]) -> None:
    """Write header and arrays to `path`; at any moment the whole old file or the whole new file is there."""
    content = json.dumps({"format": FORMAT, **header}, allow_nan=False).encode()
    if len(content) > MOST_HEADER:
        raise ValueError(f"path: the hyper-parameters take {len(content):,} bytes, and a file may have {MOST_HEADER:,}")
    with replacing(as_path("path", path, EXAMPLE)) as file, zipfile.ZipFile(file, "w") as archive:
        with new_entry(archive, HEADER) as entry:
            entry.write(content)
        for name, array in arrays.items():
            with new_entry(archive, f"{name}.npy") as entry:
                np.lib.format.write_array(entry, array, version=(1, 0), allow_pickle=False)


def new_entry(archive: zipfile.ZipFile, name: str) -> IO[bytes]:
    """An entry to write to, independent of the clock and the system."""
    info = zipfile.ZipInfo(name, date_time=(1980, 1, 1, 0, 0, 0))
    info.compress_type, info.create_system, info.external_attr = zipfile.ZIP_DEFLATED, 3, 0o600 << 16
    info._compresslevel = 1  # type: ignore[attr-defined]  # `open` has no argument for it
    return archive.open(info, "w", force_zip64=True)


def is_agent(path: Path) -> bool:
    """Whether a file is that of an agent, of this or another version of kernelrl."""
    try:
        with zipfile.ZipFile(path) as archive:
            return HEADER in archive.namelist()
    except (zipfile.BadZipFile, ValueError, NotImplementedError):
        return False


class Refused(ValueError):  # noqa: N818
    """What is wrong with a file; the message is put after the file's name."""


class Archive:
    """An open file of an agent, of which only the header has been read."""

    def __init__(self, file: IO[bytes]) -> None:
        self._archive = zipfile.ZipFile(file)
        entries = self._archive.infolist()
        if len(entries) > MOST_ENTRIES:
            raise ValueError(f"it has {len(entries)} entries")
        self._entries = {entry.filename: entry for entry in entries}
        if len(self._entries) < len(entries):
            raise ValueError("it has two entries of the same name")
        if HEADER not in self._entries:
            raise Refused("is a zip file, but not a saved kernelrl agent")
        self.header = self._read_header()

    def _open(self, name: str) -> IO[bytes]:
        entry = self._entries[name]
        if entry.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED) or entry.flag_bits & 1:
            raise ValueError(f"{name} is compressed in a way that kernelrl does not write")
        return self._archive.open(entry)

    def _read_header(self) -> dict[str, Any]:
        size = self._entries[HEADER].file_size
        if size > MOST_HEADER:
            raise ValueError(f"its header takes {size:,} bytes, and at most {MOST_HEADER:,} are read")
        with self._open(HEADER) as entry:
            header = json.loads(entry.read(), parse_constant=no_number)
        if not isinstance(header, dict):
            raise ValueError("its header is not a JSON object")
        version = header.get("format")
        if not isinstance(version, int) or isinstance(version, bool) or version < 1:
            raise ValueError(f"its header must name the format, a whole number from 1 on, and has {version!r}")
        if version > FORMAT:
            raise Refused(
                f"was saved by a newer version of kernelrl ({header.get('version')}, format {version}); this version "
                f"reads format {FORMAT}: upgrade kernelrl"
            )
        if version < FORMAT:
            raise Refused(
                f"was saved by an earlier kernelrl (format {version}, this one reads {FORMAT}), {EARLIER[version]}; "
                "learn again, or load it with that version"
            )
        return header

    def names(self) -> list[str]:
        """The names of the arrays."""
        others = [name for name in self._entries if name != HEADER]
        for name in others:
            if not name.endswith(".npy"):
                raise ValueError(f"it holds {name}, which is not of such an agent")
        return [name.removesuffix(".npy") for name in others]

    def names_of(self, part: str) -> list[str]:
        """The names of the arrays of one part of the file, "", BEFORE or RIGS, without that prefix."""
        names, has_parts = self.names(), "open" in self.header or "rigs" in self.header
        if part:
            return [name.removeprefix(part) for name in names if name.startswith(part)]
        return [name for name in names if not (has_parts and name.startswith((BEFORE, RIGS)))]

    def check_names(self, expected: list[str], part: str = "") -> None:
        """Raise ValueError unless the arrays of that part have exactly the `expected` names."""
        found = self.names_of(part)
        for name in found:
            if name not in expected:
                raise ValueError(f"it holds {part}{name}, which is not of such an agent")
        for name in expected:
            if name not in found:
                raise ValueError(f"array {part}{name} is missing")

    def outlines(self, part: str = "") -> dict[str, npt.NDArray[Any]]:
        """Read-only arrays with the types and shapes of the arrays of that part, which take no memory.

        Their sizes are compared with those of the entries, and with the available memory.
        """
        found, total = {}, 0
        for name in self.names():
            with self._open(f"{name}.npy") as entry:
                shape, dtype, start = read_outline(entry.read(PREAMBLE), name)
            size, declared = math.prod(shape) * dtype.itemsize, self._entries[f"{name}.npy"].file_size
            if start + size != declared:
                raise ValueError(
                    f"array {name} of shape {shape} takes {size:,} bytes, but {declared - start:,} are there"
                )
            total += size
            found[name] = np.broadcast_to(np.zeros((), dtype), shape)
        if total > (available := available_memory()):
            raise ValueError(f"its arrays take {total:,} bytes, and {available:,} bytes of memory are available")
        return {name: found[part + name] for name in self.names_of(part)}

    def read(self, name: str) -> npt.NDArray[Any]:
        """An array whose outline has been checked."""
        with self._open(f"{name}.npy") as entry:
            array: npt.NDArray[Any] = np.lib.format.read_array(entry, allow_pickle=False)
        return array


def no_number(name: str) -> None:
    """Reject NaN and infinities, which are not JSON."""
    raise ValueError(f"its header holds {name}")


def read_outline(content: bytes, name: str) -> tuple[tuple[int, ...], np.dtype[Any], int]:
    """Shape, type and first byte of the data of an array, from the bytes that its entry begins with."""
    stream = io.BytesIO(content)
    if np.lib.format.read_magic(stream) != (1, 0):
        raise ValueError(f"array {name} is in a format that kernelrl does not write")
    shape, fortran, dtype = np.lib.format.read_array_header_1_0(stream)
    if fortran or dtype.hasobject or not dtype.isnative or min(shape, default=0) < 0:
        raise ValueError(f"array {name} is not plain numbers in C order")
    return shape, dtype, stream.tell()


class FileError(ValueError):
    """A file that cannot be loaded; the message names it."""


class ArgumentError(TypeError):
    """A mistake of the caller, not of the file."""


@contextlib.contextmanager
def open_archive(path: str | os.PathLike[str]) -> Iterator[Archive]:
    """The file of an agent; any error with it inside the block becomes a ValueError that names the file."""
    path = as_path("path", path, EXAMPLE)
    if path.is_dir():
        raise IsADirectoryError(f"path: {path} is a folder; give the file of an agent, as agent.save wrote it")
    if not path.is_file():
        raise FileNotFoundError(f"path: there is no file {path}")
    # Damage makes zipfile, zlib, json, NumPy and constructors raise errors of many kinds.
    with open(path, "rb") as file:
        try:
            archive = Archive(file)
        except Refused as error:
            raise FileError(f"path: {path} {error}") from error
        except Exception as error:
            raise FileError(
                f"path: {path} is not a saved kernelrl agent, or it is damaged or cut short ({error})"
            ) from error
        try:
            yield archive
        except Refused as error:
            raise FileError(f"path: {path} {error}") from error
        except ArgumentError:
            raise
        except Exception as error:
            kind = "" if isinstance(error, ValueError) else f"{type(error).__name__}: "
            raise FileError(f"path: {path} is damaged: {kind}{error}") from error

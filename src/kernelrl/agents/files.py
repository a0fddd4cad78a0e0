"""Writing files so that at any moment, also after a crash, the whole old file or the whole new file is there."""

import contextlib
import json
import os
import secrets
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

__all__ = ["as_path", "replacing", "require_folder", "sync_folder", "write_json"]


def as_path(name: str, given: Any, example: str) -> Path:
    """The argument as a path, or an error that names it."""
    if not isinstance(given, str | os.PathLike):
        raise TypeError(f'{name} must be a path, such as "{example}"; got {given!r}')
    return Path(given)


@contextlib.contextmanager
def replacing(path: Path, sync_name: bool = True) -> Iterator[IO[bytes]]:
    """A file to write to, which replaces `path` when the block succeeds and is deleted when it fails.

    The content is on disk before the name is changed. With `sync_name=False` the new name is on disk only once a later
    call has synced the folder: for several files in one folder it is enough if the last one does.

    Links are followed: their target is replaced. The mode of an existing file is kept, and only regular files are
    replaced. Any number of threads and processes may write to one path at the same time; the last one to end wins.
    """
    target = Path(os.path.realpath(path))
    require_folder(target)
    mode = mode_of(path, target)
    temporary = target.with_name(f".{target.name[:40]}.{os.getpid()}-{secrets.token_hex(8)}.part")
    try:
        with open(os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666), "wb") as file:
            if mode is not None:
                os.chmod(temporary, mode)
            yield file
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, target)
        if sync_name:
            sync_folder(target.parent)
    finally:
        temporary.unlink(missing_ok=True)


def require_folder(path: Path) -> None:
    """Raise FileNotFoundError if the folder of a file does not exist."""
    if not path.parent.is_dir():
        raise FileNotFoundError(f"path: there is no folder {path.parent} to write {path.name} into")


def mode_of(path: Path, target: Path) -> int | None:
    """The mode of the regular file at `target`, to which `path` leads, or None if there is no file."""
    try:
        found = os.lstat(target).st_mode
    except FileNotFoundError:
        return None
    if stat.S_ISDIR(found):
        raise IsADirectoryError(f"path: {path} is a folder; give the name of a file in it")
    if not stat.S_ISREG(found):
        raise ValueError(f"path: {path} is not a regular file, so it is not replaced; give another name")
    return stat.S_IMODE(found)


def sync_folder(folder: Path) -> None:
    """Write names created or changed in `folder` to disk; syncing a file does not cover its name.

    Windows cannot open folders, and has no call for this.
    """
    if os.name == "nt":
        return
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def write_json(path: Path, content: Any, sync_name: bool = True) -> None:
    """Write `content` as JSON; for `sync_name` see `replacing`."""
    with replacing(path, sync_name) as file:
        file.write(json.dumps(content, indent=2, ensure_ascii=False, allow_nan=False).encode() + b"\n")

"""Writing files: whole or not at all, beside others who write, and nothing but regular files is replaced."""

from __future__ import annotations

import os
import stat
import threading

import pytest

import kernelrl as krl
from kernelrl.agents.files import replacing, write_json


def write(path, content):
    with replacing(path) as file:
        file.write(content)


def mode(path):
    return stat.S_IMODE(os.stat(path).st_mode)


def save_and_load_in_threads(folder, saves):
    """Four threads save so many times each to one path, a fifth loads; return all errors and how often it loaded."""
    path, errors, loads, saving = folder / "agent.krl", [], [], threading.Event()
    agents = [krl.RandomAgent(horizon=h) for h in range(1, 5)]
    agents[0].save(path)
    saving.set()

    def save(agent):
        try:
            for _ in range(saves):
                agent.save(path)
        except BaseException as error:
            errors.append(error)

    def load():
        try:
            while saving.is_set():
                loads.append(krl.load(path).horizon)
        except BaseException as error:
            errors.append(error)

    reader, writers = threading.Thread(target=load), [threading.Thread(target=save, args=(a,)) for a in agents]
    for thread in (reader, *writers):
        thread.start()
    for thread in writers:
        thread.join()
    saving.clear()
    reader.join()
    assert set(loads) <= set(range(1, 5)) and os.listdir(folder) == ["agent.krl"]
    return errors, len(loads)


def test_threads_that_save_to_one_path(tmp_path):
    """All of them succeed, and who loads reads a whole file at any time."""
    errors, loads = save_and_load_in_threads(tmp_path, 30)
    assert not errors and loads


def test_two_files_in_the_making(tmp_path):
    path = tmp_path / "file"
    with replacing(path) as one, replacing(path) as other:
        one.write(b"one")
        other.write(b"other")
        left = sorted(file.name for file in tmp_path.glob(".*.part"))
        assert len(left) == 2 and not path.exists()  # as experiments look for what a killed process has left
    assert path.read_bytes() == b"one" and os.listdir(tmp_path) == ["file"]


def test_links_are_followed(tmp_path):
    (tmp_path / "there").mkdir()
    target, link, second = tmp_path / "there" / "target", tmp_path / "link", tmp_path / "second"
    link.symlink_to("there/target")
    second.symlink_to(link)
    for content in (b"new", b"again"):  # where the target is not there yet, and where it is
        write(second, content)
        assert target.read_bytes() == content and link.is_symlink() and second.is_symlink() and not target.is_symlink()
    assert os.listdir(tmp_path / "there") == ["target"]


def test_a_link_to_itself(tmp_path):
    (tmp_path / "loop").symlink_to("loop")
    with pytest.raises((ValueError, OSError), match="loop"):
        write(tmp_path / "loop", b"")


@pytest.mark.parametrize("kept", [0o600, 0o644, 0o640, 0o444])
def test_the_mode_is_kept(kept, tmp_path):
    path = tmp_path / "file"
    path.write_bytes(b"old")
    path.chmod(kept)
    write(path, b"new")
    assert mode(path) == kept and path.read_bytes() == b"new"


@pytest.mark.parametrize(("umask", "expected"), [(0o022, 0o644), (0o077, 0o600), (0o002, 0o664)])
def test_the_mode_of_a_new_file(umask, expected, tmp_path):
    before = os.umask(umask)
    try:
        write(tmp_path / "file", b"")
    finally:
        os.umask(before)
    assert mode(tmp_path / "file") == expected


def test_only_regular_files_are_replaced(tmp_path):
    os.mkfifo(tmp_path / "fifo")
    (tmp_path / "folder").mkdir()
    (tmp_path / "null").symlink_to(os.devnull)
    for name in ("fifo", "null"):
        with pytest.raises(ValueError, match=rf"path: .*{name} is not a regular file, so it is not replaced"):
            krl.RandomAgent().save(tmp_path / name)
    with pytest.raises(IsADirectoryError, match=r"path: .*folder is a folder"):
        krl.RandomAgent().save(tmp_path / "folder")
    assert stat.S_ISFIFO(os.stat(tmp_path / "fifo").st_mode) and stat.S_ISCHR(os.stat(os.devnull).st_mode)
    assert sorted(os.listdir(tmp_path)) == ["fifo", "folder", "null"]


def test_long_names(tmp_path):
    path = tmp_path / ("ä" * 120)
    write_json(path, {"a": 1})
    assert path.read_text() == '{\n  "a": 1\n}\n'

"""Every block of code of README.md and docs/ runs (tests/doc_blocks.py says what that means for each language)."""

from __future__ import annotations

import sys

import pytest

from doc_blocks import LANGUAGES, PAGES, ROOT, Block, Reader, blocks_of, check_command
from kernelrl.agents.registry import NAMES, REGISTRY

PAGES_WITH_CODE = [page for page in PAGES if page.exists() and blocks_of(page)]


@pytest.fixture(autouse=True)
def only_our_objects(monkeypatch):
    """Registries as in a new process: a page may give a name that another test of this process has given as well."""
    for kind, classes in REGISTRY.items():
        monkeypatch.setitem(REGISTRY, kind, {name: cls for name, cls in classes.items() if is_ours(cls)})
    before = dict(NAMES)
    for cls in [cls for cls in NAMES if not is_ours(cls)]:
        del NAMES[cls]
    yield
    NAMES.clear()
    NAMES.update(before)


def is_ours(cls):
    return cls.__module__.startswith("kernelrl.")


@pytest.mark.parametrize("page", PAGES_WITH_CODE, ids=lambda page: page.name)
def test_every_block_runs(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(ROOT / "examples")
    monkeypatch.syspath_prepend(tmp_path)
    reader = Reader(tmp_path)
    try:
        for block in blocks_of(page):
            reader.run(block)
    finally:
        for name in ("page", "my_schedules"):
            sys.modules.pop(name, None)


@pytest.mark.parametrize("page", PAGES_WITH_CODE, ids=lambda page: page.name)
def test_every_block_says_what_it_is(page):
    for block in blocks_of(page):
        assert block.language in LANGUAGES, f"{page.name}:{block.line}: {block.language!r}"
        assert block.reason is None or len(block.reason) > 10


def test_what_would_fail(tmp_path):
    with pytest.raises(ZeroDivisionError):
        Reader(tmp_path).run(Block("x.md", 1, "python", "1/0\n", ""))
    with pytest.raises(AssertionError, match="no '7'"):
        Reader(tmp_path).run(Block("x.md", 1, "python", "5\n", "7 → 1"))
    with pytest.raises(AssertionError, match="nowhere"):
        check_command(["make", "nowhere"], "make nowhere")
    with pytest.raises(AssertionError, match="gpu"):
        check_command(["pip", "install", "kernelrl[gpu]"], "pip install 'kernelrl[gpu]'")
    with pytest.raises(Exception, match="bandwith"):
        Reader(tmp_path).run(Block("x.md", 1, "toml", "bandwith = 0.1\n", ""))

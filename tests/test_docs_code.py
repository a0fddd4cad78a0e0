"""Every block of code of README.md and docs/ runs (tests/doc_blocks.py says what that means for each language)."""

from __future__ import annotations

import sys

import pytest

from doc_blocks import LANGUAGES, PAGES, ROOT, Block, Reader, blocks_of, check_command
from kernelrl.agents.registry import NAMES, REGISTRY

PAGES_WITH_CODE = [page for page in PAGES if page.exists() and blocks_of(page)]


@pytest.fixture(autouse=True)
def as_in_a_new_process(monkeypatch):
    """Registries without what other tests of this process gave them, and the modules that gave it not yet imported."""
    registries = [NAMES, *REGISTRY.values()]
    before = [dict(registry) for registry in registries]
    theirs = [cls for cls in NAMES if not is_ours(cls)]
    for cls in theirs:
        monkeypatch.delitem(sys.modules, cls.__module__, raising=False)
        del NAMES[cls]
    for classes in REGISTRY.values():
        for name in [name for name, cls in classes.items() if not is_ours(cls)]:
            del classes[name]
    modules = set(sys.modules)
    yield
    for cls in [cls for cls in NAMES if not is_ours(cls)]:
        if cls.__module__ not in modules:
            sys.modules.pop(cls.__module__, None)
    for registry, content in zip(registries, before, strict=True):
        registry.clear()
        registry.update(content)


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

"""The blocks of code of README.md and docs/, and what it means to run each kind of them.

    python    runs, in one namespace for a page; a block whose first line is `# NAME.py …` is that file, and is imported
    sh        each line: `kernelrl …` runs; of `make …`, `pip install …` and `python FILE` it is checked that there is
              such a target, such an extra, such a file
    toml      an experiment, or a part of one: all its agents are made and started
    c         is compiled and run, if there is a compiler
    text      is not code

A comment above a block, `<!-- test: HINT -->`, changes this:

    2_000 → 20; 50 → 5      replaces numbers by smaller ones
    with import numba       runs something first; further changes stand after a |
    needs torch             leaves the block out where that is not installed
    not run, REASON         leaves the block out
"""

from __future__ import annotations

import importlib
import importlib.util
import re
import shlex
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path
from types import ModuleType
from typing import NamedTuple

from typer.testing import CliRunner

from kernelrl.cli import app
from kernelrl.experiments.config import read_experiment
from kernelrl.experiments.declared import read_model
from kernelrl.experiments.plan import Plan

ROOT = Path(__file__).resolve().parent.parent
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").glob("*.md"))]
LANGUAGES = ("python", "sh", "toml", "c", "text", "layers")
BLOCK = re.compile(r"^(?:<!-- test: (?P<hint>.*?) -->\n)?```(?P<language>[^\n]*)\n(?P<code>.*?)^```", re.S | re.M)
START = 'name = "part"\nepisodes = 1\nseeds = 1\n[environment]\nid = "{env}"\n'


class Block(NamedTuple):
    """One block of a page."""

    page: str
    line: int
    language: str
    code: str
    hint: str

    @property
    def reason(self) -> str | None:
        """Why it is not run, if it is not."""
        kind, _, rest = self.hint.partition(" ")
        if kind == "needs":
            return f"{rest} is not installed" if importlib.util.find_spec(rest) is None else None
        return self.hint.removeprefix("not run, ") if self.hint.startswith("not run, ") else None

    def prepared(self) -> str:
        """The code as the comment above it changes it."""
        code, first, changes = self.code, "", self.hint
        if changes.startswith("needs "):
            return code
        if changes.startswith("with "):
            first, _, changes = changes.removeprefix("with ").partition(" | ")
        for change in filter(None, changes.split("; ")):
            old, arrow, new = change.partition(" → ")
            assert arrow and old in code, f"{self.page}:{self.line}: there is no {old!r} in the block"
            code = code.replace(old, new)
        return f"{first}\n{code}" if first else code


def blocks_of(page: Path) -> list[Block]:
    """All blocks of a page, but for Sphinx's directives."""
    text = page.read_text()
    return [
        Block(page.name, text[: m.start("code")].count("\n") + 1, m["language"], m["code"], m["hint"] or "")
        for m in BLOCK.finditer(text)
        if not m["language"].startswith("{")
    ]


class Reader:
    """Someone who tries a page from the top to the bottom, in an empty folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.module = ModuleType("page")  # dataclasses look for the module of their class
        sys.modules["page"] = self.module

    def run(self, block: Block) -> None:
        """Try one block."""
        if block.language in ("text", "layers") or block.reason:
            return
        {"python": self.python, "sh": self.shell, "toml": self.toml, "c": self.c}[block.language](block)

    def python(self, block: Block) -> None:
        named = re.match(r"# (\w+\.py)\b", block.code)
        file = self.folder / (named[1] if named else f"{Path(block.page).stem}_{block.line}.py")
        file.write_text(block.prepared())  # numba and error messages read the source
        if named:
            importlib.invalidate_caches()
            importlib.import_module(file.stem)
            return
        exec(compile(file.read_text(), str(file), "exec", dont_inherit=True), self.module.__dict__)

    def shell(self, block: Block) -> None:
        for line in block.prepared().splitlines():
            words = shlex.split(line, comments=True)
            if words and words[0] == "kernelrl":
                done = CliRunner().invoke(app, words[1:], catch_exceptions=False)
                assert done.exit_code == 0, f"{line}\n{done.output}"
            elif words:
                check_command(words, line)

    def toml(self, block: Block) -> None:
        text, part = block.prepared(), tomllib.loads(block.prepared())
        if "kind" in part:  # a declared model; commands of the page read it
            (self.folder / "model.toml").write_text(text)
            read_model(self.folder / "model.toml")
            return
        if "name" not in part:
            if "agents" not in part:
                text = f'[[agents]]\nlabel = "it"\nagent = "KernelUCBVI"\n{text}'
            text = START.format(env=f"kernelrl/{'Oil' if 'sb3:' in text else 'TwinRooms'}-v0") + text
        file = self.folder / f"{part.get('name', 'part')}.toml"
        file.write_text(text)
        Plan.of(read_experiment(file))

    def c(self, block: Block) -> None:
        if (compiler := shutil.which("cc")) is None:
            return
        lines = block.prepared().splitlines()
        include = [line for line in lines if line.startswith("#")]
        body = [line for line in lines if not line.startswith("#")]
        source = "\n".join([*include, "int main(void) {", *body, "return action < 0;", "}"])
        (self.folder / "main.c").write_text(source)
        flags = ["-std=c99", "-Wall", "-Werror", "main.c", "-o", "main", "-lm"]
        subprocess.run([compiler, *flags], cwd=self.folder, check=True, timeout=60)
        subprocess.run(["./main"], cwd=self.folder, check=True, timeout=60)


def check_command(words: list[str], line: str) -> None:
    """Of a command that is not ours: what it names is there."""
    if words[0] == "make":
        targets = [word for word in words[1:] if "=" not in word]
        makefile = (ROOT / "Makefile").read_text()
        wrong = [name for name in targets if not re.search(rf"^{re.escape(name)}:", makefile, re.M)]
        wrong = [name for name in wrong if not (ROOT / "benchmarks" / f"{name.removeprefix('bench-')}.py").exists()]
    elif words[:2] == ["pip", "install"]:
        extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
        named = [name for word in words[2:] for name in re.findall(r"\[([\w,]+)\]", word)]
        wrong = [name for names in named for name in names.split(",") if name not in extras]
    elif words[0] == "python":
        wrong = [word for word in words[1:2] if not (ROOT / word).exists()]
    else:
        wrong = [words[0]] if words[0] not in ("git", "cd") else []
    assert not wrong, f"{line}: there is no {wrong}"

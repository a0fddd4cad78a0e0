"""What docs name is there: files and functions, messages, public names."""

from __future__ import annotations

import ast
import importlib.util
import re
from functools import cache
from pathlib import Path
from types import ModuleType

import pytest

import kernelrl

ROOT = Path(__file__).resolve().parent.parent
PLACES = (ROOT, ROOT / "src" / "kernelrl", ROOT / "tests")


def spans(text: str) -> list[str]:
    """What stands between backticks, blocks of code apart."""
    return re.findall(r"`([^`\n]+)`", re.sub(r"```.*?```", "", text, flags=re.S))


def find(name: str) -> Path | None:
    """The file of that name, as docs give it."""
    return next((place / name for place in PLACES if (place / name).exists()), None)


@cache
def defined(file: Path) -> set[str]:
    """The functions, classes and names that a file defines, wherever in it."""
    found = set()
    for node in ast.walk(ast.parse(file.read_text())):
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            found.add(node.name)
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            found.add(node.id)
    return found


def is_file(span: str) -> bool:
    return bool(re.fullmatch(r"[\w./-]+\.py|[a-z_./-]+/", span))


def wrong_names(table: str) -> list[str]:
    """Files that are not there, and names that are not defined in the file that stands before them."""
    wrong = []
    for cell in re.split(r"[|\n]", table):
        file = None
        for span in spans(cell):
            if is_file(span):
                file = find(span)
                if file is None:
                    wrong.append(span)
            elif re.fullmatch(r"[A-Za-z_]\w*", span) and (file is None or span not in defined(file)):
                wrong.append(f"{span} in {file and file.name}")
    return wrong


def test_what_would_be_wrong():
    assert wrong_names("| `theory/regret.py`: `rates` | `test_docs.py`: `wrong_names` |") == []
    assert wrong_names("| `theory/regrets.py` |") == ["theory/regrets.py"]
    assert wrong_names("| `theory/regret.py`: `rate_of` |") == ["rate_of in regret.py"]
    assert wrong_names("| `rates` |") == ["rates in None"]


def test_from_the_paper_to_the_code():
    text = (ROOT / "docs" / "paper_to_code.md").read_text()
    table = "\n".join(line for line in text.splitlines() if line.startswith("| "))
    assert len(table.splitlines()) > 30 and len([span for span in spans(table) if is_file(span)]) > 80
    assert wrong_names(table) == []


@pytest.mark.parametrize("name", sorted(path.name for path in (ROOT / "docs").glob("*.md")))
def test_files_that_docs_name(name):
    named = {span for span in spans((ROOT / "docs" / name).read_text()) if is_file(span) and "/" in span.rstrip("/")}
    assert not (gone := sorted(span for span in named if find(span) is None)), f"docs/{name} names {gone}"


def test_the_table_of_the_readme_is_that_of_the_benchmarks():
    """Rows of README.md have the numbers of docs/benchmarks.md, which a command writes."""
    numbers = {}
    for line in (ROOT / "docs" / "benchmarks.md").read_text().splitlines():
        if re.match(r"\| [^|]+ \| \*?\*?\d\.\d{3} ", line):
            label, *cells = (cell.strip() for cell in line.strip("|").split("|"))
            numbers.setdefault(label, [re.match(r"\**([\d.]+|–)", cell)[1] for cell in cells])
    text = (ROOT / "README.md").read_text().partition("## How it compares")[2]
    rows = [line.strip("|").split("|") for line in text.splitlines() if re.match(r"\| .*\d\.\d{3}", line)]
    assert len(rows) > 5
    for label, *cells in rows:
        shown = [cell.strip(" *()") for cell in cells]
        assert shown == [numbers[label.strip()][place] for place in (0, 1, 2, 5, 6, 7)], label


def texts(node: ast.AST) -> str | None:
    """A text of the code, with \0 in place of what is filled in; None for anything else."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return node.value
    if isinstance(node, ast.JoinedStr):
        return "".join(str(part.value) if isinstance(part, ast.Constant) else "\0" for part in node.values)
    return None


def test_messages_that_docs_explain():
    """Every message of docs/errors.md begins as one of the code does; its first word may be filled in."""
    sources = [path.read_text() for path in (ROOT / "src" / "kernelrl").rglob("*.py")]
    known = {text for source in sources for node in ast.walk(ast.parse(source)) if (text := texts(node))}
    rows = [line for line in (ROOT / "docs" / "errors.md").read_text().splitlines() if line.startswith("| `")]
    assert len(rows) > 20
    for message in (re.match(r"\| `([^`]+)`", row)[1] for row in rows):
        begins = (message, "\0" + message[message.find(" ") :])
        assert any(text.startswith(begins) for text in known), message


def test_reference_has_every_public_name():
    pages = "\n".join(path.read_text() for path in (ROOT / "docs" / "api").glob("*.md"))
    named = set(re.findall(r"^\.\. auto\w+:: (\S+)", pages, re.M))
    for name in kernelrl.__all__:
        thing = getattr(kernelrl, name)
        assert (thing.__name__ if isinstance(thing, ModuleType) else f"kernelrl.{name}") in named, name


def links_of(text: str) -> list[str]:
    """Where a page's links and pictures lead, blocks of code apart."""
    return re.findall(r"\]\(([^)\s]+)\)", re.sub(r"```.*?```", "", text, flags=re.S))


def anchors_of(text: str) -> set[str]:
    """The anchors of a page's headings, as GitHub makes them."""
    headings = re.findall(r"^#+ (.*)$", re.sub(r"```.*?```", "", text, flags=re.S), re.M)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("name", ["README.md", "CONTRIBUTING.md", "CHANGELOG.md"])
def test_relative_links_lead_somewhere(name):
    relative = [link for link in links_of((ROOT / name).read_text()) if not link.startswith("http")]
    assert len(relative) >= 2
    for link in relative:
        file, _, anchor = link.partition("#")
        assert (ROOT / file).exists(), f"{name}: {link}"
        if anchor:
            assert anchor in anchors_of((ROOT / file).read_text()), f"{name}: {link}"


def test_the_table_of_the_gallery_is_written_between_its_markers():
    gallery = script("draw_gallery")
    page = (ROOT / "docs" / "gallery.md").read_text()
    assert gallery.with_rows(page, {}) == page, "make gallery writes it"
    changed = gallery.with_rows(page, {"Oil": "| Oil | 7 episodes | 1 | 2 |"})
    assert [line for line in changed.splitlines() if line not in page.splitlines()] == ["| Oil | 7 episodes | 1 | 2 |"]
    assert all(f"| {name} | {count:,} episodes |" in page for name, count in gallery.EPISODES.items())
    with pytest.raises(ValueError, match="table: begin"):
        gallery.with_rows("no table", {})


def script(name: str) -> ModuleType:
    """A script of docs/, imported."""
    spec = importlib.util.spec_from_file_location(name, ROOT / "docs" / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_alt_texts_keep_their_spaces():
    """Sphinx leaves out ends of lines in alt texts, so pages are read with each alt text in one line."""
    docstrings = script("docstrings")
    assert docstrings.with_whole_alt_texts("a\nb ![upper\nright](x.png) c\n") == "a\nb ![upper right](x.png) c\n"
    for page in (ROOT / "docs").glob("*.md"):
        read = docstrings.with_whole_alt_texts(page.read_text())
        assert not re.search(r"!\[[^\]]*\n", read), page.name


def test_the_page_of_agents_leaves_out_inner_methods():
    is_inner = script("docstrings").is_inner
    inner = ("exact_plan", "merged_plan", "model_of", "capture", "reinstate", "after_rows", "new_model", "get_ready")
    assert all(map(is_inner, inner))
    public = ("fit", "act", "choose", "observe", "q_values", "values", "counts", "save", "partition", "certificate")
    assert not any(map(is_inner, public))

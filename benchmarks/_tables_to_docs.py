"""Copy the tables and figures of a report over several problems into a document.

    python benchmarks/_tables_to_docs.py results/suite docs/benchmarks.md

What stands between the lines `<!-- tables: begin -->` and `<!-- tables: end -->` of the document is replaced by
DIR/report/tables.md, which `kernelrl report DIR` writes; its figures are copied to the folder `figures` beside the
document. So no number of the document is written by hand.
"""

from __future__ import annotations

import re
import shutil
import sys
from pathlib import Path

BEGIN, END = "<!-- tables: begin -->", "<!-- tables: end -->"


def filled(document: str, tables: str, prefix: str) -> str:
    """The document with the tables in place of what it had; figures are named `figures/PREFIX-NAME.png`."""
    if document.count(BEGIN) != 1 or document.count(END) != 1 or document.index(BEGIN) > document.index(END):
        raise ValueError(f"the document needs one line {BEGIN} and after it one line {END}")
    before, after = document.split(BEGIN)[0], document.split(END)[1]
    tables = re.sub(r"^# (.*)\n", r"The numbers of the experiment `\1`.\n", tables).replace("\n## ", "\n### ")
    tables = re.sub(r"\]\(([\w-]+\.png)\)", rf"](figures/{prefix}-\1)", tables)
    return f"{before}{BEGIN}\n\n{tables.strip()}\n\n{END}{after}"


def copy(results: Path, document: Path) -> None:
    """Fill the document from the report in `results`/report."""
    report = results / "report"
    tables = (report / "tables.md").read_text(encoding="utf-8")
    text = filled(document.read_text(encoding="utf-8"), tables, results.name)
    figures = document.parent / "figures"
    figures.mkdir(exist_ok=True)
    for name in re.findall(r"\]\(([\w-]+\.png)\)", tables):
        shutil.copyfile(report / name, figures / f"{results.name}-{name}")
    document.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    copy(Path(sys.argv[1]), Path(sys.argv[2]))

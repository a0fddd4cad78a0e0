"""Reports of experiments: summary statistics, figures, and one HTML page.

`write_report(DIR)` does what `kernelrl report DIR` does. Data flow from `summary` (reads the store) through
`statistics` to `figures` (matplotlib, for papers and printers), `charts` and `maps` (for the page) and `page`. `across`
does the same for experiments over several problems.
"""

from kernelrl.imports import require

require("a report", "matplotlib", "plotly")  # before anything below imports them, so that the message says what to do

from kernelrl.reporting.report import report_of, write_report  # noqa: E402

__all__ = ["report_of", "write_report"]

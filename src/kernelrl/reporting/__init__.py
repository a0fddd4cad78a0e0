"""Reports of experiments: summary statistics, figures, and one HTML page.

`write_report(DIR)` does what `kernelrl report DIR` does. Data flow from `summary` (reads the store) through
`statistics` to `figures` (matplotlib, for papers and printers), `charts` and `maps` (for the page) and `page`.
"""

from kernelrl.reporting.page import report_of, write_report

__all__ = ["report_of", "write_report"]

"""What a model is worth on rows that it has not seen: one self-contained HTML page.

`make_report` measures and writes the page; it opens without a network, on a phone and on paper.
Needs jinja2 and matplotlib: ``pip install 'setconv[report]'``.
"""

from __future__ import annotations

from setconv.messages import needed

with needed("the report", "jinja2", "report"):
    import jinja2 as _jinja2  # noqa: F401  -- asked for here, so that the message comes early
with needed("the report", "matplotlib", "report"):
    import matplotlib as _matplotlib  # noqa: F401

from setconv.report.page import ReportPage, make_report

__all__ = ["ReportPage", "make_report"]

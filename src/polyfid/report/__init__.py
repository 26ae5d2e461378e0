"""A page to show to colleagues: one HTML file with the verdict, the data and the model.

>>> from polyfid.report import render, write_report
"""

from polyfid.report.contents import render, write_report
from polyfid.report.notebook import Page

__all__ = ["Page", "render", "write_report"]

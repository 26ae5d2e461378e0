"""A page to show to colleagues: one HTML file with the verdict, the data and the model.

>>> from polyfid.report import render, write_report
"""

from polyfid.report.contents import annotators_of, render, write_report
from polyfid.report.notebook import Page

__all__ = ["Page", "annotators_of", "render", "write_report"]

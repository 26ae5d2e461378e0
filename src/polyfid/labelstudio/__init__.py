"""Label Studio: exports as tables of items, answers and trusted labels, and predictions for it.

``polyfid.crowd.to_rows(*read_export("export.json"))`` is a table to learn from, `read_items` gives
the rows to predict, and `write_predictions` writes predictions that Label Studio imports, so that
annotators can start with the least certain tasks.
"""

from polyfid.labelstudio.export import Export, read_export
from polyfid.labelstudio.predictions import write_predictions
from polyfid.labelstudio.tasks import LabelStudioError, read_items

__all__ = ["Export", "LabelStudioError", "read_export", "read_items", "write_predictions"]

"""Label Studio: exports as tables of items, answers and trusted labels, and predictions for it.

``polyfid.crowd.to_rows(*read_export("export.json"))`` is a table to learn from, `read_items` gives
the rows to predict, and `write_predictions` writes predictions that Label Studio imports, so that
annotators can start with the least certain tasks.
"""

from polyfid.labelstudio.export import Export, LabelStudioError, read_export, read_items
from polyfid.labelstudio.predictions import write_predictions

__all__ = ["Export", "LabelStudioError", "read_export", "read_items", "write_predictions"]

"""Label Studio: its exports as tables of items, answers and trusted labels; predictions for it.

``polyfid.crowd.to_rows(*read_export("export.json"))`` is a table to learn from, and
`write_predictions` brings what was learnt back, so that people look at the least certain tasks
first.
"""

from polyfid.labelstudio.export import Export, read_export
from polyfid.labelstudio.predictions import write_predictions
from polyfid.labelstudio.tasks import LabelStudioError

__all__ = ["Export", "LabelStudioError", "read_export", "write_predictions"]

"""Label Studio: exports as tables of items, answers and trusted labels, and predictions for it.

``polyfid.crowd.to_rows(*read_export("export.json"))`` is a table to learn from, `read_items` gives
the rows to predict, and `write_predictions` writes predictions that Label Studio imports, so that
annotators can start with the least certain tasks.

`LiveProject` does this with a project on a running server, round after round: it fits to the labels
that are there, writes predictions back, and puts the tasks in the order of what their labels are
expected to teach. `Backend` answers Label Studio as a machine learning backend.
"""

from polyfid.labelstudio.client import HttpServer, Server, ServerError
from polyfid.labelstudio.export import Export, LabelStudioError, read_export, read_items
from polyfid.labelstudio.live import LiveModel, LiveOptions, TooFewLabelsError, learn, version_of
from polyfid.labelstudio.predictions import write_predictions
from polyfid.labelstudio.serve import Backend
from polyfid.labelstudio.watch import LiveProject, Round

__all__ = [
    "Backend",
    "Export",
    "HttpServer",
    "LabelStudioError",
    "LiveModel",
    "LiveOptions",
    "LiveProject",
    "Round",
    "Server",
    "ServerError",
    "TooFewLabelsError",
    "learn",
    "read_export",
    "read_items",
    "version_of",
    "write_predictions",
]

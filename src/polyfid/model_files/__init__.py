"""Models in files: written and read without pickle, so that a file can do no more than not load."""

from polyfid.model_files import known as _known
from polyfid.model_files.container import SCHEMA, inspect, plain, read, write
from polyfid.model_files.errors import ModelFileError, refusing
from polyfid.model_files.registry import register
from polyfid.model_files.state import ClassifierState

__all__ = [
    "SCHEMA",
    "ClassifierState",
    "ModelFileError",
    "inspect",
    "plain",
    "read",
    "refusing",
    "register",
    "write",
]

del _known

"""Models in files: written and read without pickle, so that a file can do no more than not load."""

from polyfid.persistence import known as _known  # puts the library's classes on the list
from polyfid.persistence.container import SCHEMA, inspect, plain, read, write
from polyfid.persistence.errors import ModelFileError, refusing
from polyfid.persistence.registry import register
from polyfid.persistence.state import ClassifierState

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

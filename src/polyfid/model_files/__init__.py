"""Models in files, without pickle: loading one runs no code of the file."""

from polyfid.model_files.container import SCHEMA, ModelFileError, is_model, refusing
from polyfid.model_files.load import inspect, read, write
from polyfid.model_files.registry import register

__all__ = [
    "SCHEMA",
    "ModelFileError",
    "inspect",
    "is_model",
    "read",
    "refusing",
    "register",
    "write",
]

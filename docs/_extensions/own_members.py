"""Pages of classes leave out what they inherit from other libraries, such as ``set_params``."""

from __future__ import annotations

from typing import Any

from sphinx.application import Sphinx


def skip(_: Sphinx, what: str, name: str, obj: Any, is_skipped: bool, options: Any) -> bool | None:
    """Whether a member is left out; None leaves the decision to others."""
    function = getattr(obj, "fget", None) or getattr(obj, "__func__", obj)
    home = getattr(function, "__module__", None) or ""
    is_foreign = callable(function) and not home.startswith("polyfid")
    return True if what == "class" and is_foreign else None


def setup(app: Sphinx) -> dict[str, Any]:
    """Listen to members as they are collected."""
    app.connect("autodoc-skip-member", skip)
    return {"parallel_read_safe": True, "parallel_write_safe": True}

"""The role ``name``: a link to what has that name, in the class or module at hand or elsewhere."""

from __future__ import annotations

from typing import Any

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.domains.python import PyXRefRole
from sphinx.environment import BuildEnvironment


class NameRole(PyXRefRole):
    """``:py:obj:`` that also searches other modules; a name without a page stays code."""

    def process_link(
        self, env: BuildEnvironment, refnode: nodes.Element, has: bool, title: str, target: str
    ) -> tuple[str, str]:
        """As of ``:py:obj:``; a module of the package may leave out the package's name."""
        title, target = super().process_link(env, refnode, has, title, target)
        refnode["refspecific"] = True
        return title, target.removesuffix("()")


def setup(app: Sphinx) -> dict[str, Any]:
    """Add the role."""
    role = NameRole()
    role.name = "py:obj"

    def name(_: str, *args: Any, **kwargs: Any) -> Any:
        return role("py:obj", *args, **kwargs)

    app.add_role("name", name)
    return {"parallel_read_safe": True, "parallel_write_safe": True}

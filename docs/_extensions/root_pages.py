"""Pages whose text is a file elsewhere in the repository, such as CHANGELOG.md."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any

from sphinx.application import Sphinx

#: The page, and the file of the repository that is its text.
PAGES = {
    "changelog": "CHANGELOG.md",
    "understanding/results": "docs/reproduction/results.md",
    "developers/contributing": "CONTRIBUTING.md",
    "developers/security": "SECURITY.md",
    "developers/examples": "examples/README.md",
}


def relinked(text: str, page: str, file: str) -> str:
    """The text of a file with its links as they are from a page: ``docs/a.md`` to ``a.md``."""
    names = {target: f"docs/{source}.md" for source, target in PAGES.items()}

    def link(match: re.Match[str]) -> str:
        target, hash_, anchor = match[1].partition("#")
        if not target or "://" in target:
            return match[0]
        path = os.path.normpath(os.path.join(os.path.dirname(file), target))
        path = names.get(path, path)
        return f"]({os.path.relpath(path, os.path.dirname(f'docs/{page}'))}{hash_}{anchor})"

    return re.sub(r"\]\(([^)\s]+)\)", link, text)


def read(app: Sphinx, page: str, source: list[str]) -> None:
    """Put the text of the file in the place of the page's own."""
    if page in PAGES:
        path = Path(app.srcdir).parent / PAGES[page]
        app.env.note_dependency(str(path))
        source[0] = relinked(path.read_text(encoding="utf-8"), page, PAGES[page])


def setup(app: Sphinx) -> dict[str, Any]:
    """Listen to pages as they are read."""
    app.connect("source-read", read)
    return {"parallel_read_safe": True, "parallel_write_safe": True}

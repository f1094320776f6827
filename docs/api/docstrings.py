"""What the project's docstrings need to become Markdown: examples and aligned columns become code, pages links."""

from __future__ import annotations

import re
from typing import Any

from griffe import Extension, Object

COLUMNS = re.compile(r"\S {3,}\S")
"""Columns are held together by three spaces or more."""

PAGE = re.compile(r"(?<!`)\bdocs/(\w+)\.md\b")
"""Pages of the guide; those of the reference are one folder below."""


class Docstrings(Extension):
    """Called by mkdocstrings for every object that it loads."""

    def on_object(self, *, obj: Object, **_: Any) -> None:
        """Rewrite the docstring of an object."""
        if obj.docstring is not None:
            obj.docstring.value = markdown(obj.docstring.value)


def markdown(docstring: str) -> str:
    r"""Return a docstring whose examples and columns are fenced.

    >>> markdown("Return one.\n\n>>> one()\n1")
    'Return one.\n\n```python\n>>> one()\n1\n```'
    """
    return "\n\n".join(map(_block, docstring.split("\n\n")))


def _block(paragraph: str) -> str:
    if paragraph.startswith(">>>"):
        return f"```python\n{paragraph}\n```"
    if paragraph.startswith("    "):
        return paragraph
    if COLUMNS.search(paragraph):
        return f"```text\n{paragraph}\n```"
    return PAGE.sub(r"[docs/\1.md](../\1.md)", paragraph.replace("](", "]\\("))  # a formula, not a link

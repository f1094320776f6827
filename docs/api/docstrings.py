"""What the project's docstrings need to become Markdown: examples and aligned columns become code, pages links."""

from __future__ import annotations

import re
from typing import Any

from griffe import Extension, Object

COLUMNS = re.compile(r"\S {3,}\S")
"""Columns are held together by three spaces or more."""

PAGE = re.compile(r"(?<!`)\bdocs/(\w+)\.md\b")
"""Pages of the guide; those of the reference are one folder below."""

SECTION = re.compile(r"^(?=\w[\w ]*\n-{3,}$)", re.MULTILINE)
"""Sections in the style of numpydoc begin with an underlined title; griffe renders them."""


class Docstrings(Extension):
    """Called by mkdocstrings for every object that it loads."""

    def on_object(self, *, obj: Object, **_: Any) -> None:
        """Rewrite the docstring of an object."""
        if obj.docstring is not None:
            obj.docstring.value = markdown(obj.docstring.value)


def markdown(docstring: str) -> str:
    r"""Return a docstring whose examples and columns are fenced, before its first section.

    >>> markdown("Return one.\n\n>>> one()\n1")
    'Return one.\n\n```python\n>>> one()\n1\n```'
    """
    text, *sections = SECTION.split(docstring)
    return "".join(["\n\n".join(map(_block, text.split("\n\n"))), *map(_section, sections)])


def _section(text: str) -> str:
    """Return a section; an example or a sentence after its entries gets the title that griffe asks for."""
    if text.startswith(("Examples", "References")):
        return _pages(text)
    first, *paragraphs = text.split("\n\n")
    for number, paragraph in enumerate(paragraphs):
        if paragraph.startswith(">>>"):
            paragraphs[number] = f"Examples\n--------\n{paragraph}"
        elif paragraph[:1].strip() and "\n    " not in paragraph:
            paragraphs[number] = f"References\n----------\n{paragraph}"
    return _pages("\n\n".join([first, *paragraphs]))


def _block(paragraph: str) -> str:
    if paragraph.startswith(">>>"):
        return f"```python\n{paragraph}\n```"
    if paragraph.startswith("    "):
        return paragraph
    if COLUMNS.search(paragraph):
        return f"```text\n{paragraph}\n```"
    return _pages(paragraph.replace("](", "]\\("))  # a formula, not a link


def _pages(text: str) -> str:
    """Return the text with links to the pages that it names."""
    return PAGE.sub(r"[docs/\1.md](../\1.md)", text)

"""The words of a report: its texts are in `templates/`, and numbers are put into them here.

Text and numbers are kept apart so that the sentences can be read, and mended, in one place. Everything that comes from
a study is escaped on its way into HTML; a name that a template does not get is an error, never an empty word.
"""

from __future__ import annotations

import re
from typing import Any

import jinja2
from markupsafe import Markup

from omg_lab.reports import formats


def unbroken(text: str) -> Markup:
    r"""Return HTML whose lines are not broken before a per cent sign, or within "p = 0.5".

    >>> str(unbroken("95 % (p = 0.5)"))
    '95\xa0% (p\xa0=\xa00.5)'
    """
    joined = re.sub(r"(?<=\d) (?=%)|(?<=\(p) (?=[=<])|(?<=\(p [=<]) (?=\d)", "\N{NO-BREAK SPACE}", text)
    return Markup(joined)  # of a template, which has escaped what it was given


ENVIRONMENT = jinja2.Environment(
    loader=jinja2.PackageLoader("omg_lab.reports"),
    autoescape=jinja2.select_autoescape(["html"]),
    undefined=jinja2.StrictUndefined,
)
ENVIRONMENT.filters |= {
    each.__name__: each for each in (formats.chance, formats.count, formats.listing, formats.number, formats.plural)
}
ENVIRONMENT.filters["unbroken"] = unbroken
ENVIRONMENT.globals |= {"estimate": formats.estimate, "percent": formats.percent}


def say(name: str, **facts: Any) -> str:
    """Return the text `name` of `words.txt` with these facts, as one line.

    >>> say("one_agent_played", focus="omg")
    'Only omg played.'
    """
    text = getattr(ENVIRONMENT.get_template("words.txt").module, name)(**facts)
    return re.sub("[ \n]+", " ", text).strip()  # a narrow space within a number stays


def render(template: str, **facts: Any) -> str:
    """Return the HTML of a template."""
    return ENVIRONMENT.get_template(template).render(**facts)

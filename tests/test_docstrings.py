"""Every public class and function says what its parameters are, and shows an example that runs.

`python -m tests.test_docstrings` prints what is missing.
"""

import ast
import dataclasses
import enum
import importlib
import inspect
import itertools
import re
import textwrap
import typing
from pathlib import Path

ROOT = Path(__file__).parent.parent
ROOMS = sorted(
    ".".join(path.relative_to(ROOT / package).with_suffix("").parts).removesuffix(".__init__")
    for package in ("library", "lab", "trial")
    for path in (ROOT / package).glob("omg_*/**/*.py")
    if re.search(r"^__all__ ", path.read_text(), re.MULTILINE)
)
"""The modules that list what they offer; the first of them is where a name is found."""
SECTION = re.compile(r"^(Parameters|Attributes)\n-+\n(.*?)(?=^\w[\w ]*\n-+\n|\Z)", re.DOTALL | re.MULTILINE)


def public():
    """Return dotted name -> class or function, each under the first room that has it."""
    found = {}
    for room in map(importlib.import_module, ROOMS):
        for name in room.__all__:
            try:
                value = getattr(room, name)
            except ImportError:  # an extra is not installed
                continue
            if (inspect.isclass(value) or inspect.isfunction(value)) and value not in found.values():
                found[f"{room.__name__}.{name}"] = value
    return found


def texts(value):
    """Return its docstring, and for a class those of our classes above it whose constructor it takes over."""
    takes_over = inspect.isclass(value) and ("__init__" not in vars(value) or dataclasses.is_dataclass(value))
    above = value.__mro__ if takes_over else (value,)
    ours = [each for each in above if each is value or each.__module__.startswith("omg_")]
    return [inspect.cleandoc(each.__doc__ or "") for each in ours]


def described(text):
    """Return the names in its sections `Parameters` and `Attributes`."""
    heads = [line for match in SECTION.finditer(text) for line in match[2].splitlines() if re.match(r"\S", line)]
    return {name.strip(" *`") for head in heads for name in head.partition(" :")[0].split(",")}


def described_in_place(kind):
    """Return the fields of a record of ours that have a text below them."""
    try:
        body = ast.parse(textwrap.dedent(inspect.getsource(kind))).body[0].body
    except (OSError, TypeError):
        return set()
    pairs = itertools.pairwise(body) if dataclasses.is_dataclass(kind) or issubclass(kind, tuple) else ()
    return {field.target.id for field, text in pairs if isinstance(field, ast.AnnAssign) and isinstance(text, ast.Expr)}


def is_plain(value):
    """Return whether there is nothing to build: an enumeration, an exception, a dictionary of options, a protocol."""
    plain = inspect.isclass(value) and (issubclass(value, enum.Enum | Exception) or typing.is_typeddict(value))
    return plain or getattr(value, "_is_protocol", False)


def lacks(value):
    """Return what is missing from the docstring of a class or function."""
    if is_plain(value):
        return []
    in_place = described_in_place(value) if inspect.isclass(value) else set()
    is_record = bool(in_place)  # we make these; a function's example shows them
    known = in_place.union(*map(described, texts(value)))
    given = {name: each for name, each in inspect.signature(value).parameters.items() if not name.startswith("_")}
    # `**ranges` may be described by what it stands for.
    further = {name for name, each in given.items() if each.kind is each.VAR_KEYWORD and known - given.keys()}
    missing = [f"`{name}`" for name in given if name not in known | further]
    return missing + ["an example"] * (not is_record and ">>>" not in texts(value)[0])


PUBLIC = public()


def test_parameters_and_an_example_are_there():
    assert {name: missing for name, value in PUBLIC.items() if (missing := lacks(value))} == {}


def test_what_is_missing_is_found():
    def plain(first, *, second=1):
        """Do nothing.

        Parameters
        ----------
        first : int
            A number.

        Returns
        -------
        second : int
            Not a parameter.
        """

    assert lacks(plain) == ["`second`", "an example"]


if __name__ == "__main__":
    for name, value in PUBLIC.items():
        if missing := lacks(value):
            print(f"{name}: {', '.join(missing)}")

"""Every hint to install something, in messages and pages, names what there is: a part of this clone, or a package."""

import re
import shlex
import tomllib
from pathlib import Path

ROOT = Path(__file__).parent.parent
PARTS = ("library", "lab", "trial")
NOTHING_THERE = {"omg-cmdp"}
"""What the page on trouble says is not to be installed from an index."""


def known_packages():
    """Return the names of all packages that one of the three asks for, also as an extra or for tests."""
    names = set()
    for part in PARTS:
        content = tomllib.loads((ROOT / part / "pyproject.toml").read_text())
        project = content["project"]
        groups = [*project.get("optional-dependencies", {}).values(), *content["dependency-groups"].values()]
        for line in [*project["dependencies"], *(each for group in groups for each in group)]:
            names.add(re.match(r"[\w.-]+", line)[0])
    return names


def hints():
    """Yield the place and the words of each hint; what a message fills in stands in braces."""
    sources = [path for part in PARTS for path in (ROOT / part / f"omg_{part}".replace("library", "cmdp")).rglob("*")]
    pages = [ROOT / "README.md", *(ROOT / part / "README.md" for part in PARTS), *(ROOT / "docs").rglob("*.md")]
    for path in [*pages, *(each for each in sources if each.suffix in (".py", ".txt", ".md", ".html"))]:
        for found in re.finditer(
            r"pip install ((?:'[^'\n]+'|[^\s`\"');,#]+)(?: +'[^'\n]+'| +\./\w+)*)", path.read_text()
        ):
            yield path.relative_to(ROOT), shlex.split(found[1])


def test_every_hint_to_install_works_as_printed():
    known, count = known_packages(), 0
    for place, words in hints():
        for word in words:
            count += 1
            if word.startswith("./"):
                part, extras = re.fullmatch(r"\./(\w+)(?:\[([\w,-]+|\{\w+\})\])?", word).groups()
                project = tomllib.loads((ROOT / part / "pyproject.toml").read_text())["project"]
                asked = {extra for extra in (extras or "").split(",") if extra and not extra.startswith("{")}
                assert asked <= set(project.get("optional-dependencies", ())), place
            else:
                name = re.match(r"[\w.-]*", word)[0]
                assert name in known | NOTHING_THERE or word.startswith("{"), f"{place}: pip install {word}"
    assert count > 30

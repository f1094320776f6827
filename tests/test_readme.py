"""The numbers of README.md are counted, not typed: `<!-- number: rivals -->40<!-- -->` is compared with the tree.

`python -m tests.test_readme` (or `make numbers`) writes the true ones; the guide's pages may have such numbers too.
"""

import ast
import inspect
import io
import math
import re
import tokenize
from pathlib import Path

import pytest

import omg_cmdp.oracles
import omg_lab.rivals
import omg_lab.worlds

ROOT = Path(__file__).parent.parent
PACKAGES = {"library": "library/omg_cmdp", "lab": "lab/omg_lab", "trial": "trial/omg_trial"}
MARKED = re.compile(r"(<!-- number: ([\w ]+) -->)(.*?)(<!-- -->)")
PAGES = [
    *sorted(ROOT.glob("*.md")),
    *(ROOT / name / "README.md" for name in PACKAGES),
    *sorted(ROOT.glob("docs/**/*.md")),
]


def modules(name):
    return sorted((ROOT / PACKAGES[name]).rglob("*.py"))


def code_lines(source):
    """Return the number of lines that hold code: no docstrings, comments, blank lines or imports."""
    skipped = (tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER)
    lines = set()
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type not in skipped:
            lines.update(range(token.start[0], token.end[0] + 1))
    for node in ast.walk(ast.parse(source)):
        is_text = (
            isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)
        )
        if is_text or isinstance(node, ast.Import | ast.ImportFrom):
            lines.difference_update(range(node.lineno, node.end_lineno + 1))
    return len(lines)


def rounded_lines(*names):
    """Return the code lines of packages, rounded up to 500: exact ones would change with every commit."""
    return 500 * math.ceil(sum(code_lines(path.read_text()) for name in names for path in modules(name)) / 500)


def concrete(room, above):
    """Return the number of classes that `room` offers and that can be made."""
    found = [getattr(room, name) for name in room.__all__]
    classes = [
        each for each in found if inspect.isclass(each) and issubclass(each, above) and not inspect.isabstract(each)
    ]
    return len(classes)


NUMBERS = {
    "rivals": lambda: concrete(omg_lab.rivals, omg_cmdp.Agent),
    "worlds": lambda: concrete(omg_lab.worlds, omg_cmdp.ContextualMDP),
    "oracles": lambda: concrete(omg_cmdp.oracles, (omg_cmdp.RewardOracle, omg_cmdp.DynamicsOracle)),
    "code lines": lambda: rounded_lines(*PACKAGES),
    **{f"code lines of the {name}": lambda name=name: rounded_lines(name) for name in PACKAGES},
    **{f"modules of the {name}": lambda name=name: len(modules(name)) for name in PACKAGES},
}


def written(name):
    """Return a number as pages write it: thousands apart."""
    return f"{NUMBERS[name]():,}".replace(",", " ")


@pytest.mark.parametrize(
    "page", [path for path in PAGES if MARKED.search(path.read_text())], ids=lambda path: path.name
)
def test_numbers_are_those_of_the_tree(page):
    found = MARKED.findall(page.read_text())
    stated, counted = [(name, text) for _, name, text, _ in found], [(name, written(name)) for _, name, _, _ in found]
    assert stated == counted, "run `make numbers`, which counts again"


def test_code_lines_are_counted():
    source = (
        '"""A module."""\n\nimport os\n# Why.\nx = [\n    1,\n]  # here\n\n\ndef f():\n    """Do."""\n    return 1\n'
    )
    assert code_lines(source) == 5


if __name__ == "__main__":
    for page in PAGES:
        page.write_text(MARKED.sub(lambda match: match[1] + written(match[2]) + match[4], page.read_text()))

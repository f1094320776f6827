"""Every code block of the READMEs and of the guide is run: a page from top to bottom, in a directory of its own.

    python    doctests where there is >>>, else executed; all blocks of a page share one namespace
    text      straight after a python block that was executed: what it prints
    toml      a plan, or a trial, which must be valid; with `# NAME.toml` in its first line, a file for the page
              (python with `# NAME.py` alike)
    sh        `omg-lab` and `omg-trial` are called, studies with fewer episodes and seeds; what `make`, `pip` and
              `python` are given must exist, and `ray` must understand it

A comment in the page, on the line before a block, makes an exception: `<!-- needs: MODULE -->` if the block runs only
where that is installed, `<!-- not run: REASON -->` if it never runs.
"""

import contextlib
import dataclasses
import doctest
import functools
import importlib
import importlib.util
import inspect
import io
import re
import shlex
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import NamedTuple

import pytest
from typer.main import get_command
from typer.testing import CliRunner

from omg_lab import cli
from omg_lab.audit.statements import STATEMENTS
from omg_lab.studies.config import read_plan
from omg_lab.studies.outside.folder import Folder
from omg_trial.cli import app as trial_app
from omg_trial.trial_file import Trial

ROOT = Path(__file__).parent.parent
DOCS = ROOT / "docs"
READMES = [ROOT / "README.md", *(ROOT / name / "README.md" for name in ("library", "lab", "trial"))]
PAGES = [*READMES, *(page for page in sorted(DOCS.rglob("*.md")) if page.parent.name != "api")]
LANGUAGES = {"python", "text", "toml", "sh", ""}
FENCE = re.compile(
    r"^(?:<!-- (?P<rule>needs|not run): (?P<given>[^\n]+) -->\n)?"
    r"```(?P<language>\w*)[^\n]*\n(?P<code>.*?)^```\n+",
    re.MULTILINE | re.DOTALL,
)
LENIENT = doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS
MOST_EXCEPTIONS = 2

EPISODES, SEEDS = 20, 2
"""The size of every study in these tests."""

LARGEST_PICTURE = 60_000

LONG = {
    "adherence.md",
    "analysis.md",
    "budgets.md",
    "first-study.md",
    "gymnasium.md",
    "late-feedback.md",
    "own-world.md",
    "regressor.md",
    "smokers.md",
    "treatment-trial.md",
    "tutorial.md",
}
"""Pages that take some seconds."""

each_page = pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
each_page_run = pytest.mark.parametrize(
    "page",
    [pytest.param(page, marks=pytest.mark.slow if page.name in LONG else ()) for page in PAGES],
    ids=lambda page: str(page.relative_to(ROOT)),
)


class Block(NamedTuple):
    language: str
    code: str
    line: int
    """The number of its first line."""
    rule: str | None
    given: str | None
    """The exception made for it, and the module or reason given."""
    printed: str | None
    """What it should print."""

    @property
    def runs(self):
        return self.rule is None or (self.rule == "needs" and importlib.util.find_spec(self.given) is not None)


def blocks(text):
    """Return all blocks of a page; a `text` straight after another block is what that prints."""
    found = list(FENCE.finditer(text))
    followers = {match.start(): match["code"] for match in found if match["language"] == "text"}
    return [
        Block(
            match["language"],
            match["code"],
            text.count("\n", 0, match.start("code")) + 1,
            match["rule"],
            match["given"],
            followers.get(match.end()),
        )
        for match in found
    ]


@each_page_run
def test_a_page_runs_from_top_to_bottom(page, tmp_path, monkeypatch):
    run_page(page.read_text(encoding="utf-8"), str(page), tmp_path, monkeypatch)


def run_page(text, name, directory, monkeypatch):
    monkeypatch.chdir(directory)
    monkeypatch.setattr(cli, "load_plan", functools.partial(small_plan, cli.load_plan))
    found, namespace = blocks(text), {"__name__": "__main__"}
    for block in found:  # first: a page may explain a file after the command that reads it
        write_file(block)
    for block in found:
        if block.language == "sh" and block.runs:
            run_commands(block)
        elif block.language == "python" and block.runs:
            run_python(block, name, namespace)
    for block in found:
        if block.language == "toml":  # last: its modules and tables are there now
            check_plan(block)


def small_plan(load_plan, *arguments, **options):
    """Load a plan, which checks all of it, and keep one world and adversary: what takes long is the report."""
    plan = load_plan(*arguments, **options)
    first = {"worlds": plan.worlds[:1], "adversaries": plan.adversaries[:1]}
    return dataclasses.replace(plan, episodes=EPISODES, seeds=plan.seeds[:SEEDS], **first)


def file_of(block):
    found = re.match(r"# ([\w-]+\.(?:toml|py))\b", block.code) if block.language in ("toml", "python") else None
    return found and Path(found[1])


def write_file(block):
    if path := file_of(block):
        path.write_text(block.code, encoding="utf-8")


def check_plan(block):
    if "[trial]" in block.code:
        Trial.parse(block.code)
        return
    path = file_of(block)
    read_plan(block.code, folder=Folder(path.resolve().parent) if path else None)


def run_python(block, name, namespace):
    if ">>> " in block.code:
        test = doctest.DocTestParser().get_doctest(block.code, namespace, name, name, block.line - 1)
        doctest.DebugRunner(optionflags=LENIENT).run(test, clear_globs=False)
        namespace.update(test.globs)
        return
    code = compile("\n" * (block.line - 1) + block.code, name, "exec")  # errors name the line of the page
    with contextlib.redirect_stdout(io.StringIO()) as output:
        exec(code, namespace)
    if block.printed is not None:
        checker, printed = doctest.OutputChecker(), output.getvalue()
        wrong = checker.output_difference(doctest.Example(block.code, block.printed), printed, LENIENT)
        assert checker.check_output(block.printed, printed, LENIENT), f"{name}, line {block.line}: {wrong}"


def run_commands(block):
    for line in block.code.replace("\\\n", " ").splitlines():
        words = shlex.split(line, comments=True)
        if words:
            COMMANDS[words[0]](words[1:])


def call_omg_lab(arguments):
    if arguments[0] in ("run", "demo"):
        arguments = [*arguments, "--workers", "1"]
    invoke(cli.app, "omg-lab", arguments)


def call_omg_trial(arguments):
    if arguments[0] == "serve":
        get_command(trial_app).commands["serve"].make_context("serve", arguments[1:])  # parses, and starts nothing
    else:
        invoke(trial_app, "omg-trial", arguments)


def invoke(app, name, arguments):
    result = CliRunner().invoke(app, arguments)
    assert result.exit_code == 0, f"{name} {shlex.join(arguments)}\n{result.output}\n{result.exception!r}"


def check_make(words):
    rules = re.findall(r"^(\w[\w-]*):", (ROOT / "Makefile").read_text(), re.MULTILINE)
    assert {word for word in words if "=" not in word} <= set(rules)


def check_pip(arguments):
    """`pip install ./library ./lab[smokers]`: the distributions of this clone, and extras that they have."""
    verb, *wanted = arguments
    assert verb == "install"
    for each in wanted:
        found = re.fullmatch(r"\./(library|lab|trial)(?:\[([\w,-]+)\])?", each)
        assert found, f"{each} is not a distribution of this clone"
        project = tomllib.loads((ROOT / found[1] / "pyproject.toml").read_text())["project"]
        assert set((found[2] or "").split(",")) - {""} <= set(project.get("optional-dependencies", ()))


def check_python(arguments):
    module = arguments[1].replace(".", "/") if arguments[0] == "-m" else arguments[0]
    assert any((ROOT / place).exists() for place in (module, f"{module}.py"))


COMMANDS = {
    "omg-lab": call_omg_lab,
    "omg-trial": call_omg_trial,
    "make": check_make,
    "pip": check_pip,
    "python": check_python,
}


@each_page
def test_no_block_is_overlooked(page):
    text = page.read_text(encoding="utf-8")
    assert text.count("```") == 2 * len(blocks(text))
    assert {block.language for block in blocks(text)} <= LANGUAGES


@pytest.mark.parametrize("page", [*PAGES, ROOT / "CONTRIBUTING.md"], ids=lambda page: str(page.relative_to(ROOT)))
def test_files_that_a_page_names_exist(page):
    """`library/tests/mdp`, `python -m tests.attack bits`: a page that sends the reader somewhere is right."""
    text = page.read_text(encoding="utf-8")
    paths = re.findall(r"`((?:library|lab|trial|tests|docs|examples)/[\w./-]+)`", text)
    modules = re.findall(r"python -m ((?:library|lab|trial|tests)\.[\w.]+)", text)
    named = {ROOT / path for path in paths} | {ROOT / module.replace(".", "/") for module in modules}
    assert [path for path in named if not (path.exists() or path.with_suffix(".py").exists())] == []


def test_exceptions_are_few():
    assert sum(block.rule == "not run" for page in PAGES for block in blocks(page.read_text())) <= MOST_EXCEPTIONS


@pytest.mark.parametrize(
    ("block", "error"),
    [
        ("python\n1 / 0", ZeroDivisionError),
        ("python\n>>> 1 + 1\n3", doctest.DocTestFailure),
        ("python\nprint(2)\n```\n\n```text\n3", AssertionError),
        ("python\nx = 1\n```\n\nNow\n\n```python\nassert x == 2", AssertionError),
        ("toml\nepisode = 3", ValueError),
        ("sh\nomg-lab run dmeo", AssertionError),
        ("sh\nomg-lab run demo --worker 2", AssertionError),
        ("sh\nmake everything", AssertionError),
        ("sh\nomg-trial check nothing.toml", AssertionError),
        ("sh\npip install './library[everything]'", AssertionError),
        ("sh\npip install omg-cmdp", AssertionError),
        ("sh\npython -m lab.benchmarks.nothing", AssertionError),
        ("sh\ncurl elsewhere", KeyError),
    ],
)
def test_a_wrong_block_is_found(block, error, tmp_path, monkeypatch):
    with pytest.raises(error):
        run_page(f"```{block}\n```\n", "page.md", tmp_path, monkeypatch)


RIGHT = """
```sh
omg-lab run a.toml
```
```toml
# a.toml
episodes = 3
[worlds.decoy]
[agents.greedy]
```
```python
import pathlib
print(pathlib.Path("a.toml").read_text())
```

```text
# a.toml ...
```
<!-- not run: it is wrong -->
```python
1 / 0
```
"""


def test_right_blocks_are_passed(tmp_path, monkeypatch):
    run_page(RIGHT, "page.md", tmp_path, monkeypatch)
    assert (tmp_path / "studies" / "a" / "runs").is_dir()


@pytest.mark.parametrize("concept", sorted((DOCS / "concepts").glob("*.md")), ids=lambda page: page.stem)
def test_a_concept_has_one_small_picture(concept):
    pictures = re.findall(r"!\[[^]]+\]\((\S+)\)", concept.read_text(encoding="utf-8"))
    assert pictures == [f"../figures/{concept.stem}.svg"]
    assert (DOCS / "figures" / f"{concept.stem}.svg").stat().st_size < LARGEST_PICTURE


@pytest.mark.slow
def test_the_pictures_are_made_by_a_command(tmp_path):
    from docs.figures.__main__ import write

    drawn = {path.name for path in write(tmp_path)}
    assert drawn == {path.name for path in (DOCS / "figures").glob("*.svg")}


PACKAGES = (
    *(f"omg_cmdp.{room}" for room in ("mdp", "planning", "oracles", "agents", "environments")),
    *(f"omg_cmdp.{room}" for room in ("adversaries", "delays", "runs", "logs", "theory", "checks")),
    *("omg_lab", "omg_lab.worlds", "omg_lab.rivals", "omg_lab.audit"),
    *("omg_trial.client", "omg_trial.export"),
)


@pytest.mark.parametrize("package", PACKAGES)
def test_every_public_name_is_in_the_reference(package):
    text = "".join(page.read_text(encoding="utf-8") for page in (DOCS / "api").glob("*.md"))
    shown = set()
    for module, members in re.findall(
        r"^::: omg_(?:cmdp|lab|trial)\.(?:\w+\.)*(\w+)(?:\n.*\n +members: \[(.*)\])?", text, re.MULTILINE
    ):
        shown |= set(members.split(", ")) if members else {module}
    public = importlib.import_module(package)
    rooms = {name for name in public.__all__ if inspect.ismodule(vars(public).get(name))}
    assert set(public.__all__) - rooms <= shown


@pytest.mark.slow
def test_search_works_from_the_disk_and_asks_no_server(tmp_path):
    browsers = [path for name in ("chromium", "chromium-browser", "google-chrome") if (path := shutil.which(name))]
    if not browsers or not importlib.util.find_spec("mkdocs"):
        pytest.skip("there is no Chromium, or no mkdocs")
    sync_api = pytest.importorskip("playwright.sync_api")
    build = [sys.executable, "-m", "mkdocs", "build", "--quiet", "--site-dir", str(tmp_path)]
    subprocess.run(build, cwd=ROOT, check=True)
    with sync_api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=browsers[0], args=["--no-sandbox"])
        page, asked = browser.new_page(), []
        page.on("request", lambda request: asked.append(request.url))
        page.goto((tmp_path / "index.html").as_uri())
        page.keyboard.press("s")
        page.keyboard.type("certificate")
        page.wait_for_selector(".md-search-result__item")
        browser.close()
    assert [url for url in asked if not url.startswith(("file:", "data:"))] == []


def test_docstrings_become_markdown():
    pytest.importorskip("griffe")
    from docs.api import docstrings

    assert doctest.testmod(docstrings) == (0, 1)
    assert docstrings.markdown("The mean f[h](s, a).") == "The mean f[h]\\(s, a)."
    assert docstrings.markdown("States   two\nActions  three") == "```text\nStates   two\nActions  three\n```"


def test_every_statement_of_an_audit_is_on_its_page_with_what_would_make_it_red():
    lines = (DOCS / "statements.md").read_text(encoding="utf-8").splitlines()
    rows = [f'| "{entry.name}" | {entry.claim} | {entry.fails_if} |' for entry in STATEMENTS.values()]
    assert [row for row in rows if row not in lines] == []


def test_every_row_of_an_audit_stands_beside_a_statement_of_the_paper_or_of_ours():
    text = (DOCS / "statements.md").read_text(encoding="utf-8").split("## The rows of an audit")[0]
    assert [name for name in STATEMENTS if f'"{name}"' not in text] == []


def test_the_advice_leaves_its_numbers_to_the_league():
    """A number that is measured stands in one place: the advice was once copied, and then went stale."""
    advice = (DOCS / "which-agent.md").read_text(encoding="utf-8").split("## Measure it")[0]
    assert re.findall(r"\d+\.\d+", advice) == []
    assert "(league.md)" in advice

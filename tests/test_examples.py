"""Every example runs, and its last line says that it has shown what it is for."""

import runpy
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parent.parent / "examples"
LAST_WORDS = {
    "app": "Everything is sent.",
    "first_plan": "The certified gap is within tolerance.",
    "from_logged_tables": "The exact value is within two standard errors of the estimate.",
    "oracle_sklearn": "The trained oracle is closer to the truth.",
    "your_gymnasium_environment": "more than the rule of thumb.",
}


def test_every_example_is_listed():
    assert {path.stem for path in EXAMPLES.glob("*.py")} == LAST_WORDS.keys()


@pytest.mark.parametrize("name", LAST_WORDS)
def test_example_runs(name, capsys):
    runpy.run_path(str(EXAMPLES / f"{name}.py"), run_name="__main__")
    assert LAST_WORDS[name] in capsys.readouterr().out

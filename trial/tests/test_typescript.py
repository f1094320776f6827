"""The TypeScript client: its types are those of the service, and its tests pass under node against a real one."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from pydantic.json_schema import models_json_schema

from omg_trial.contract import answers, calls
from omg_trial.service import Service
from omg_trial.tokens import Tokens
from omg_trial.web.app import make_app
from omg_trial.web.server import serving
from trial.tests.trials import desk, trial

HOME = Path(__file__).parents[1] / "clients" / "typescript"
TYPES = HOME / "src" / "types.ts"
CALLS = (calls.Open, calls.Decide, calls.Report, calls.Close)
ANSWERS = (answers.Opened, answers.Decided, answers.Reported, answers.Closed, answers.ErrorAnswer)
NODE, COMPILER = shutil.which("node"), HOME / "node_modules" / ".bin" / "tsc"
needs_node = pytest.mark.skipif(NODE is None, reason="node is not installed")


def schemas():
    """What every trial's calls and answers have in common, as OpenAPI has it."""
    models = [(each, "validation") for each in CALLS] + [(each, "serialization") for each in ANSWERS]
    return models_json_schema(models)[1]


def generated(document, folder):
    (folder / "openapi.json").write_text(json.dumps(document))
    command = [NODE, HOME / "generate.mjs", folder / "openapi.json"]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


@needs_node
def test_the_types_are_those_of_the_service(tmp_path):
    """Of every trial, as they are in the package; and of this one, with its own states and actions."""
    assert generated(schemas(), tmp_path) == TYPES.read_text(), "run python -m trial.tests.test_typescript"
    service = Service(desk())
    try:
        document = make_app(service, Tokens(tmp_path / "tokens")).openapi()
    finally:
        service.end()
    found = document["components"]["schemas"]
    for name, schema in schemas()["$defs"].items():
        assert found[name]["properties"].keys() == schema["properties"].keys()
        assert set(found[name].get("required", ())) == set(schema.get("required", ()))
    own = generated(document, tmp_path)
    assert 'action: "nothing" | "reminder" | "call" | null;' in own
    assert 'state: "took it" | "missed it";' in own


@pytest.mark.slow
@needs_node
def test_the_client_passes_its_tests(tmp_path):
    if not COMPILER.exists():
        pytest.skip(f"the compiler is not installed: npm install in {HOME.name}")
    subprocess.run([COMPILER, "--outDir", tmp_path], cwd=HOME, check=True)
    (tmp_path / "package.json").write_text('{"type": "module"}')
    with serving(trial(), tmp_path / "trial.db", tmp_path / "tokens") as url:
        told = {"OMG_TRIAL_URL": url, "OMG_TRIAL_TOKEN": Tokens(tmp_path / "tokens").add("app", "phones")}
        command = [NODE, "--test", tmp_path / "test" / "client.test.js"]
        done = subprocess.run(command, env={**os.environ, **told}, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout


if __name__ == "__main__":
    import tempfile

    with tempfile.TemporaryDirectory() as made:
        sys.exit(0 if TYPES.write_text(generated(schemas(), Path(made))) else 1)

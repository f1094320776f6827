"""Compiled code is never older than what it was made from, and gives the same bits wherever its arrays lie."""

import ast
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import omg_cmdp
from library.tests import plain_python
from omg_cmdp import jit, provenance
from omg_cmdp.jit import Lazy
from omg_cmdp.oracles.compiled import finite

LOOPS = """
from omg_cmdp.jit import compiled
from omg_cmdp.limits.constants import (
    LIMIT,
)
from omg_cmdp.limits import helpers

@compiled
def twice_the_limit(x):
    return helpers.twice(x * LIMIT)
"""
HELPERS = """
from omg_cmdp.jit import inner

@inner
def twice(x):
    return 2.0 * x
"""


@pytest.fixture
def package(tmp_path):
    """A package of the same name with our `jit.py`, and compiled code that takes a constant from another room."""
    ours = tmp_path / "omg_cmdp"
    for name, text in {
        "__init__.py": "",
        "loops/__init__.py": "",
        "loops/kernels.py": LOOPS,
        "limits/__init__.py": "",
        "limits/constants.py": "LIMIT = 3.0\n",
        "limits/helpers.py": HELPERS,
        "limits/other.py": "OTHER = 1\n",
    }.items():
        path = ours / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    for name in ("jit.py", "progress.py", "provenance.py"):
        shutil.copy(Path(omg_cmdp.__file__).parent / name, ours / name)
    return ours


def result(package, prefix="", **environment):
    """Return what the compiled function says in a fresh process, whether it was loaded, and what is said on stderr.

    `prefix` is code that runs before anything is imported.
    """
    program = (
        f"{prefix}\nfrom omg_cmdp.jit import Lazy; k = Lazy('omg_cmdp.loops.kernels');"
        "print(k.twice_the_limit(1.0), sum(k.twice_the_limit.stats.cache_hits.values()))"
    )
    bare = {name: value for name, value in os.environ.items() if name != "NUMBA_CACHE_DIR"}
    ran = subprocess.run(
        [sys.executable, "-B", "-c", program],
        cwd=package.parent,
        env=bare | {name: str(value) for name, value in environment.items()},
        capture_output=True,
        text=True,
        check=True,
    )
    value, hits = ran.stdout.split()
    return float(value), hits == "1", ran.stderr


@pytest.mark.slow
def test_a_constant_of_another_room_recompiles(package):
    assert result(package)[:2] == (6.0, False)
    (package / "limits" / "other.py").write_text("OTHER = 2\n")  # which compiled code does not import
    assert result(package)[:2] == (6.0, True)
    (package / "limits" / "constants.py").write_text("LIMIT = 5.0\n")
    assert result(package)[:2] == (10.0, False)
    (package / "limits" / "helpers.py").write_text(HELPERS.replace("2.0 * x", "4.0 * x"))
    assert result(package)[:2] == (20.0, False)
    for path in package.rglob("*.nb?"):
        path.write_bytes(b"")  # by a crash of the machine
    assert result(package)[:2] == (20.0, False)


@pytest.mark.slow
def test_code_from_older_sources_is_not_loaded_whoever_kept_it_last(package, tmp_path):
    """A process that began before an edit compiles when others have seen the edit, and keeps its old code."""
    where, source = {"NUMBA_CACHE_DIR": tmp_path / "kept"}, package / "limits" / "constants.py"
    older = f"""
import subprocess, sys
import omg_cmdp.loops.kernels
open({str(source)!r}, "w").write("LIMIT = 5.0")
subprocess.run([sys.executable, "-c", "import omg_cmdp.loops.kernels"], check=True)
"""
    assert result(package, older, **where)[0] == 6.0
    assert result(package, **where)[:2] == (10.0, False)


READ_ONLY = """
import os, tempfile
def refuse(*arguments, **named):
    raise PermissionError(13, "Permission denied")
"""
NO_FOLDER = READ_ONLY + "os.makedirs = tempfile.TemporaryFile = os.replace = os.unlink = refuse"
FULL = READ_ONLY + "os.replace = os.unlink = refuse"


@pytest.mark.parametrize("prefix", [NO_FOLDER, FULL], ids=["no folder to write to", "no room"])
def test_without_a_place_to_keep_it_code_is_compiled_in_memory(prefix, package):
    value, hit, said = result(package, prefix)
    assert (value, hit) == (6.0, False)
    (line,) = [line for line in said.splitlines() if "kept" in line]
    assert "set NUMBA_CACHE_DIR to a writable folder" in line


FORKS = """
import os, signal, threading
import scipy.linalg, threadpoolctl
from omg_cmdp.jit import one_thread

def threads():
    return [pool["num_threads"] for pool in threadpoolctl.threadpool_info()]

def plan_for_ever():
    while True:
        with one_thread():
            pass

before = threads()
threading.Thread(target=plan_for_ever, daemon=True).start()
codes = []
for _ in range(30):
    child = os.fork()
    if not child:
        signal.alarm(5)
        same = threads() == before
        with one_thread():
            one = set(threads()) <= {1}
        os._exit(0 if same and one and threads() == before else 1)
    codes.append(os.waitpid(child, 0)[1])
    if codes[-1]:
        break
print(codes)
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_a_child_forked_while_a_thread_plans_neither_waits_for_it_nor_inherits_its_limit():
    ran = subprocess.run([sys.executable, "-W", "ignore", "-c", FORKS], capture_output=True, text=True, check=True)
    assert ran.stdout.strip() == str([0] * 30)


def test_a_stand_in_imports_its_module_with_the_first_use():
    module = Lazy("omg_cmdp.oracles.compiled.finite")
    assert "mix_class" not in vars(module)
    assert module.mix_class is finite.mix_class
    assert vars(module)["mix_class"] is finite.mix_class


def scattered(arrays, rng):
    """Return copies of the arrays in one buffer, in a random order and at random distances."""
    room = np.empty(sum(array.size for array in arrays) + 9 * (len(arrays) + 1))
    copies, place = [None] * len(arrays), int(rng.integers(9))
    for i in rng.permutation(len(arrays)):
        copies[i] = room[place : place + arrays[i].size].reshape(arrays[i].shape)
        copies[i][:] = arrays[i]
        place += arrays[i].size + int(rng.integers(9))
    return copies


@pytest.mark.parametrize(("functions", "cells"), [(5, 7), (16, 40), (33, 10)])
def test_sums_have_the_same_bits_wherever_arrays_lie(functions, cells, seed):
    rng = np.random.default_rng(seed)
    shapes = ((functions,), (2,), (cells, functions), (2, cells), (cells,), (cells,))
    arrays = [rng.random(shape) for shape in shapes]
    found = set()
    for _ in range(300):
        losses, rates, columns, mixed, centres, means = scattered(arrays, rng)
        finite.mix_class(losses, rates, columns, mixed)
        finite.expected_square(losses, 2.0, columns, centres, means)
        found.add((mixed.tobytes(), means.tobytes()))
    assert len(found) == 1


def test_compiled_code_counts_indices_from_the_front():
    """It looks up what an index says: -1 would be the memory before the array."""
    for path in Path(__file__).parents[2].glob("*/omg_*/**/*.py"):
        source = path.read_text()
        if re.search(r"^from omg_cmdp\.jit import .*(compiled|inner|leaf)", source, re.MULTILINE):
            for each in ast.walk(ast.parse(source)):
                if isinstance(each, ast.Subscript) and not ast.unparse(each.value).endswith(".shape"):
                    assert not re.search(r"(^|[(, ])-\d", ast.unparse(each.slice)), (path.name, ast.unparse(each))


def test_compiled_code_is_made_from_few_sources():
    """Were the root among them, any edit would recompile everything, and optional packages would be imported."""
    rooms = Path(jit.__file__).parent
    for file in rooms.rglob("*.py"):
        if re.search(r"^from omg_cmdp\.jit import .*(compiled|inner|leaf)", file.read_text(), re.MULTILINE):
            pending, found = [".".join(("omg_cmdp", *file.relative_to(rooms).with_suffix("").parts))], set()
            while pending:
                name = pending.pop()
                if name not in found:
                    found.add(name)
                    pending += provenance.source_of(name)[1]
            assert not found & {"omg_cmdp", "omg_cmdp.environments", "omg_cmdp.planning"}, file


@pytest.mark.slow
def test_plain_python_plans_decides_and_learns_the_same():
    """NUMBA_DISABLE_JIT=1 is how one debugs; only the order of sums in BLAS may differ."""
    ran = subprocess.run(
        [sys.executable, "-W", "error", "-m", "library.tests.plain_python"],
        cwd=Path(__file__).parents[2],
        env=os.environ | {"NUMBA_DISABLE_JIT": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr
    np.testing.assert_allclose(json.loads(ran.stdout), plain_python.results(), atol=1e-7)


@pytest.mark.slow
def test_a_cache_for_any_processor_serves_the_next_process(tmp_path):
    """As in the image of a trial: the second process compiles nothing, whichever machine filled the cache."""
    said = []
    for _ in range(2):
        ran = subprocess.run(
            [sys.executable, "-m", "omg_cmdp", "warm-up"],
            env=os.environ | {"NUMBA_CACHE_DIR": str(tmp_path), "NUMBA_CPU_NAME": "generic", "NUMBA_CPU_FEATURES": ""},
            capture_output=True,
            text=True,
            check=True,
        )
        said.append((ran.stdout.strip(), "compiling" in ran.stderr))
    assert re.fullmatch(r"\d+ functions compiled", said[0][0])
    assert said[1] == ("nothing to compile: all was in the cache", False)

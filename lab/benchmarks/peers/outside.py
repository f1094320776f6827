"""Calls of the guests: a script of `guests` run by the Python that has the peers' packages.

That is `.venv/peers/bin/python`, or the environment that OMG_PEERS names.
"""

from __future__ import annotations

import functools
import json
import os
import subprocess
from pathlib import Path
from typing import Any

GUESTS = Path(__file__).parent / "guests"
HOME = Path(__file__).parents[3] / ".venv" / "peers"
PACKAGES = {"scool": "rlberry_scool", "bsuite": "bsuite", "colosseum": "colosseum", "jax": "haiku"}


def python() -> Path:
    """Return the peers' Python, whether it exists or not."""
    return Path(os.environ.get("OMG_PEERS", HOME)) / "bin" / "python"


@functools.cache
def available(peer: str) -> bool:
    """Return whether the peer's package is there."""
    if not python().exists():
        return False
    found = f"import importlib.util as u, sys; sys.exit(u.find_spec({PACKAGES[peer]!r}) is None)"
    return subprocess.run([python(), "-c", found], check=False).returncode == 0


def ask(peer: str, **request: Any) -> Any:
    """Return the guest's answer to the request."""
    script = GUESTS / f"of_{peer}.py"
    done = subprocess.run([python(), script, json.dumps(request)], capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"{script.name} failed: {done.stderr.strip().splitlines()[-1:]}")
    return json.loads(done.stdout.strip().splitlines()[-1])

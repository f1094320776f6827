"""The machine that computes: its processor and its BLAS, on which the last bits of every plan depend."""

from __future__ import annotations

import functools
import os
import platform
from pathlib import Path

TOLERANCE = 1e-9
"""Largest difference between probabilities that two processors may compute from one log; see the guide on operation."""


@functools.cache
def machine() -> dict[str, str]:
    """Return the processor, the BLAS and its kernels, and the target of compiled code.

    Where all of them are equal, so is every bit; otherwise probabilities are equal up to `TOLERANCE`.

    >>> sorted(machine())
    ['blas', 'compiled for', 'processor']
    """
    import scipy.linalg  # noqa: F401 - it has a BLAS of its own, which is seen only when it is loaded
    import threadpoolctl

    pools = threadpoolctl.ThreadpoolController().select(user_api="blas").info()
    kinds = sorted({f"{each['internal_api']} {each['version']} {each.get('architecture', '')}" for each in pools})
    return {
        "processor": f"{platform.machine()} {_processor()}",
        "blas": ", ".join(kinds),
        "compiled for": os.environ.get("NUMBA_CPU_NAME", "") or "this processor",
    }


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        lines = []
    # Names may be the same for two generations in a virtual machine; family and model are not.
    wanted = ("model name", "cpu family", "model")
    found = dict(line.replace("\t", "").split(":", 1) for line in reversed(lines) if ":" in line)
    return " ".join(found[name].strip() for name in wanted if name in found) or platform.processor()

"""The door to the compiled loops, opened with the first use: importing the package compiles nothing."""

from __future__ import annotations

import functools
from types import ModuleType


@functools.cache
def entropy_kernels() -> ModuleType:
    """Return `omg_cmdp.agents.entropy_kernels`."""
    from omg_cmdp.agents import entropy_kernels as module

    return module


@functools.cache
def gamma_kernels() -> ModuleType:
    """Return `omg_cmdp.agents.gamma_kernels`."""
    from omg_cmdp.agents import gamma_kernels as module

    return module


@functools.cache
def igw_kernels() -> ModuleType:
    """Return `omg_cmdp.agents.igw_kernels`."""
    from omg_cmdp.agents import igw_kernels as module

    return module


@functools.cache
def glm_kernels() -> ModuleType:
    """Return `omg_cmdp.agents.glm_kernels`."""
    from omg_cmdp.agents import glm_kernels as module

    return module


@functools.cache
def uc3rl_kernels() -> ModuleType:
    """Return `omg_cmdp.agents.uc3rl_kernels`."""
    from omg_cmdp.agents import uc3rl_kernels as module

    return module

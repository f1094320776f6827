"""Runs: the protocol between world, adversary and agent, and the exact ledger of what happened."""

from omg_cmdp.runs.ledger import Ledger
from omg_cmdp.runs.play import play
from omg_cmdp.runs.shortfall import shortfall
from omg_cmdp.runs.simulate import Run, simulate

__all__ = ["Ledger", "Run", "play", "shortfall", "simulate"]

"""Runs: the protocol between world, adversary and agent, with an exact ledger; and play in environments, with a log."""

from omg_cmdp.runs.advice import Advice, advise
from omg_cmdp.runs.ledger import Ledger
from omg_cmdp.runs.play import play
from omg_cmdp.runs.shortfall import shortfall
from omg_cmdp.runs.simulate import Run, simulate
from omg_cmdp.runs.warm_up import warm_up

__all__ = ["Advice", "Ledger", "Run", "advise", "play", "shortfall", "simulate", "warm_up"]

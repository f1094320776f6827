"""Runs: the protocol between world, adversary and agent, and the exact ledger of what happened."""

from omg_cmdp.experiments.evaluation import Round
from omg_cmdp.experiments.ledger import Ledger
from omg_cmdp.experiments.playing import EpisodeLog, play
from omg_cmdp.experiments.shortfall import shortfall
from omg_cmdp.experiments.simulation import Run, simulate

__all__ = ["EpisodeLog", "Ledger", "Round", "Run", "play", "shortfall", "simulate"]

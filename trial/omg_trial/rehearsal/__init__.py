"""Rehearsals: a whole trial with simulated people on a virtual clock, before anybody is recruited."""

from omg_trial.rehearsal.findings import Estimated, analyse
from omg_trial.rehearsal.player import FlakyDatabase, Player
from omg_trial.rehearsal.reactions import load_model, random_context, simple_model
from omg_trial.rehearsal.report import Rehearsal, describe_rehearsal, rehearse, summarise, write_rehearsal
from omg_trial.rehearsal.script import TROUBLE, Script

__all__ = [
    "TROUBLE",
    "Estimated",
    "FlakyDatabase",
    "Player",
    "Rehearsal",
    "Script",
    "analyse",
    "describe_rehearsal",
    "load_model",
    "random_context",
    "rehearse",
    "simple_model",
    "summarise",
    "write_rehearsal",
]

"""Misfit: whether the episodes contradict the class of functions of an oracle, and what to try."""

from omg_cmdp.misfit.judgement import Contradiction, Misfit, MisfitStatus

__all__ = ["Contradiction", "Misfit", "MisfitStatus"]

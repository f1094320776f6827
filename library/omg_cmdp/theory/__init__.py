"""The theorems as numbers: constants, bounds, errors, and the record of a round."""

from omg_cmdp.theory import bounds, errors
from omg_cmdp.theory.ceiling.ceiling import RegretCeiling
from omg_cmdp.theory.constants import Assumptions
from omg_cmdp.theory.rounds import Round

__all__ = ["Assumptions", "RegretCeiling", "Round", "bounds", "errors"]

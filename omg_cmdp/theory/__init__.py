"""The theorems as numbers (`bounds`, `errors`) and as checks of a run (`Audit`)."""

from omg_cmdp.theory import bounds, errors
from omg_cmdp.theory.audit import Audit, Row, Summary, combine
from omg_cmdp.theory.constants import Assumptions
from omg_cmdp.theory.rounds import Round
from omg_cmdp.theory.statements import KINDS, Statement

__all__ = ["KINDS", "Assumptions", "Audit", "Round", "Row", "Statement", "Summary", "bounds", "combine", "errors"]

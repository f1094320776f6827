"""The theorems as numbers (`bounds`, `errors`) and as checks of a run (`Audit`)."""

from omg_cmdp.theory import bounds, errors
from omg_cmdp.theory.audit import Audit, Row, Summary, combine
from omg_cmdp.theory.constants import Assumptions
from omg_cmdp.theory.rounds import Round

__all__ = ["Assumptions", "Audit", "Round", "Row", "Summary", "bounds", "combine", "errors"]

"""The theorems as numbers (`bounds`) and as checks of a run (`Audit`)."""

from omg_cmdp.theory import bounds
from omg_cmdp.theory.audit import Audit, Row, Summary, combine
from omg_cmdp.theory.rounds import Round

__all__ = ["Audit", "Round", "Row", "Summary", "bounds", "combine"]

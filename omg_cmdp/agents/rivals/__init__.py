"""Agents of other papers, and ablations of OMG-CMDP!."""

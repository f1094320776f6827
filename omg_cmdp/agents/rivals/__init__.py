"""Agents of other papers."""

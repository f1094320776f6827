"""Compiled code for plans within budgets. Importing this compiles nothing."""

"""Finite classes of known functions: the best of N, one best for each context and state, or only one."""

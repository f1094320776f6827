"""Oracles made of oracles: aggregates, one oracle per step, copies for late outcomes, doubling epochs."""

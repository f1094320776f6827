"""Rehearsals: a whole trial with simulated people on a virtual clock, before anybody is recruited."""

"""Encoders, which turn continuous observations into cells, and a report on how many cells there should be."""

"""Worlds made of Gymnasium environments, with proofs that contexts reach them."""

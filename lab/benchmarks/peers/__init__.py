"""Worlds of other people, played by their definitions: their agents' numbers beside ours.

`python -m lab.benchmarks.peers`. Each module has one peer's worlds as tables of the public API, written from the
definition that it cites, and the measure that the peer uses. `guests` are scripts for an environment that has the
peers' packages; without one there are only our numbers.
"""

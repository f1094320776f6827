"""A small trial file, for examples and for trying things out."""

EXAMPLE = """
[trial]
name = "adherence"
horizon = 2

[states]
names = ["took it", "missed it"]

[actions]
names = ["nothing", "reminder"]
fallback = { nothing = 0.5, reminder = 0.5 }

[context]
labels = ["alone", "with others"]

[rewards]
[dynamics]

[exploration]
floor = 0.2
"""

"""The study file of a trial: what it says, checked."""

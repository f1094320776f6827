"""The people of a trial: who takes part, by which clock, in which arm, and how much of an action a week may have."""

"""Watching a trial: thresholds, the process's own counters, checks, incidents, and what the page shows."""

"""Operation: copies of the log, newer software, alerts to the team."""

"""The log of a trial: events, chained by hashes, and where they are kept."""

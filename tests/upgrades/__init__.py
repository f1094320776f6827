"""One small file of every format that a version of this package has written, and what the current one makes of it."""

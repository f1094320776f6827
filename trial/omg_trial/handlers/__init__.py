"""Turn a call into an event and an answer. Nothing is changed here; a call may be refused."""

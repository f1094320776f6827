"""The trial's secret and the keys of its people, which lie in a file of their own and not in the log."""

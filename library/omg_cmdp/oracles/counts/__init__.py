"""Tables of counts, for all contexts together or one for each of a list."""

"""Studies: a TOML file becomes runs, stored as they are played."""

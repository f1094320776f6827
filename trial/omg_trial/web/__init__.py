"""The desk over HTTP: the only part of the package that imports a web framework."""

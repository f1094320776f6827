"""Scripts that run where a peer's package is installed, and know nothing of ours: JSON in, JSON out.

A script takes one request, {"what": "tables" | "play", ...}, as its argument, and prints the answer as its last line.
"""

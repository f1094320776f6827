"""The two regularisers, as numbers for compiled code."""

LOG, ROOT = 0, 1

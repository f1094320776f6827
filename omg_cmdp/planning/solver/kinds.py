"""The two regularisers, by the number that compiled code knows them by."""

LOG, ROOT = 0, 1

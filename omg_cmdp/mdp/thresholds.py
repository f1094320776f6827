"""Below which probability a state counts as unreachable."""

UNREACHABLE_BELOW = 1e-30
"""A state whose probability at a step, under the uniform policy, is below this counts as unreachable there."""

NEGLIGIBLE = 1e-20
"""A plan that puts more than this on a state that counts as unreachable has nothing proven."""

"""The probability below which a state counts as unreachable."""

UNREACHABLE_BELOW = 1e-30
"""A state counts as unreachable at a step if the uniform policy reaches it with a smaller probability."""

NEGLIGIBLE = 1e-20
"""Nothing is proven of a plan that puts more than this on an unreachable state."""

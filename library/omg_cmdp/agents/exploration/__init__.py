"""Exploration rules: how OMG-CMDP! decides what to play, given its model.

A rule is asked before each episode. Those here choose the weights m_h(s, a) > 0 of the log barrier, and play the
maximiser of ⟨q, f̂⟩ + Σ m·log q; the paper's barrier is m = 1/γ. With known dynamics, for any weights (docs/theory.md,
Theorem A; Theorem B adds a term if the dynamics are not known),

    V* - V^π <= Σ m·(1 + q̂) + ¼·Σ q̂·(f* - f̂)²/m.
"""

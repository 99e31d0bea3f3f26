"""Decides whether a packet leaves: outbound methods, routes, security rules. Pure functions of the estate's facts.

Used by the checks of tables A, B, D and E, and by the decision for a single interface (`decision`).
"""

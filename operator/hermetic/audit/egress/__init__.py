"""What decides whether a packet leaves: methods, routes, rules. Pure arithmetic on what the estate shows.

Checks of tables A, B, D and E share it; so does whoever wants to know of one interface whether it can get out, and how.
"""

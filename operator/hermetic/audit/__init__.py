"""Whether a packet could leave: what was seen, what was judged from it, and how that is told and signed. Pure."""

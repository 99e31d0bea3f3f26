"""Every check of the truth table, by family: pages in `<family>/checks.toml`, functions in the modules beside it.

A check does no I/O, reads no clock and does not decide what missing data means: it names its observations, and
`evaluation` draws the conclusion. Its id is never changed.
"""

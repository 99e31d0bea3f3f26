"""Every check of the truth table, by family: `<family>/checks.toml` says what each is about, the files beside it judge.

A check never does I/O, never reads a clock and never decides what missing data means: it names what it looked at, and
`judging` draws the conclusion. Its id is kept for ever.
"""

"""Pure: how each engine is started from a spec, and how its failures are recognised."""

"""Pure: how each engine is started from a spec, and how it says that it failed."""

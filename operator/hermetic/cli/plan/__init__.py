"""`hermetic plan`: its command, and its answer as text and as JSON."""

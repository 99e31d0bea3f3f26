"""`hermetic plan`: its command, and its output as text and as JSON."""

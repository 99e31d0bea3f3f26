"""`hermetic check`: facts about a cluster in, rows about them out. Only `collecting` asks an API server."""

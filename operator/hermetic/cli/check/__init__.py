"""`hermetic check`: rows computed from facts about a cluster. Only `collecting` calls an API server."""

"""The cluster as a source: answers from lists (command line), or from a watched cache (operator)."""

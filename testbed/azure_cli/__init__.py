"""The real az CLI, installed once from a locked list, that tells whether a command would be understood."""

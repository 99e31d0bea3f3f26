"""The real az CLI, installed once from a locked list, to check whether it understands a command."""

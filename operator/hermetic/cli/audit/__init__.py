"""`hermetic audit`: its command, its input files, its sources and its output formats."""

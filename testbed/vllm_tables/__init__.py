"""Which flags and environment variables a vLLM version understands, read from that version's own source distribution.

`python -m testbed.vllm_tables.derive` writes one table per supported minor version into the operator's package; nothing
here imports vLLM: its parser is followed through the syntax tree, and what cannot be followed is an error, not a guess.
"""

"""Which flags and environment variables an SGLang release understands, read from that release's own wheel.

`python -m testbed.sglang_tables.derive` writes one table per supported release into the operator's package. SGLang is
not imported: its fields are read from the syntax tree, and what cannot be read is an error.
"""

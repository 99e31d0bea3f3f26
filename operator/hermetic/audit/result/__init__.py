"""The result of an audit: what is derived from findings, and the report."""

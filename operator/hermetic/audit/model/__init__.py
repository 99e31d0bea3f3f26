"""The vocabulary of an audit: findings and verdicts, the hops of a path, sets of addresses."""

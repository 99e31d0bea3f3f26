"""What an audit allows: the policy file, its trusted node agents, and exceptions."""

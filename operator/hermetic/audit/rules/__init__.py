"""What routes, security groups and firewalls let through."""

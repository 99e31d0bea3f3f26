"""Replicas of several nodes: what each group needs, decided from its object, its pods and the time."""

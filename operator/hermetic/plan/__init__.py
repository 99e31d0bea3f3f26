"""Pure: what to do about one ModelDeployment, and what to say about it, from one frozen look at the world."""

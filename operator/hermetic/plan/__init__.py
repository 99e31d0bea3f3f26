"""Pure: what to write for one ModelDeployment, and its status, computed from one frozen snapshot."""

"""`hermetic status`: its command, the report of one ModelDeployment, and remedies."""

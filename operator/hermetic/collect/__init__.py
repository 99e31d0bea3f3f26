"""What looks at the world and brings back an estate: Azure, the cluster, and the probe."""

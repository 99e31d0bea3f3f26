"""Where Hermetic meets the API server: the only room that imports the Kubernetes client library."""

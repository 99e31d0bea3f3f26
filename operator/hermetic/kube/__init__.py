"""Client of the API server, reflector, store and Lease: the only package that imports the Kubernetes client library."""

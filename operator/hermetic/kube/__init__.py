"""Client of the API server, reflector, store and Lease: the only package that talks to it."""

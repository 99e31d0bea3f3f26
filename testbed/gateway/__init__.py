"""A door for many models: the Gateway API's own definitions, a stand-in for a controller of it, and the real Envoy."""

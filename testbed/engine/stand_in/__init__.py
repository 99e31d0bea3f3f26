"""The engine's stand-in: answers where vLLM or a NIM would, says so everywhere, and needs nothing but Python itself.

It starts, refuses, fails, serves and drains as the engine it stands in for does, as far as a pod, a probe, a load
balancer or a client could tell. It never computes anything.
"""

NAME = "hermetic engine stand-in"

"""The real vLLM, served as the operator renders it: in a sandbox, every packet logged, none leaving."""

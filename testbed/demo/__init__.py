"""`make demo`: the whole way from `kubectl apply` to an answer, on this machine."""

"""The test bed: a real Kubernetes on one machine, and stand-ins for what one machine does not have.

    python -m testbed programs       build the Go programs (cached)
    python -m testbed controlplane   run etcd, kube-apiserver, its controllers and fake nodes in the foreground

Used by tests, demo and bench. It imports nothing of the product: a test bed that shared code with what it
tests would share its mistakes.
"""

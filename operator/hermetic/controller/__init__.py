"""The control loop: work queue, reconciler, kopf runtime, auditor, and the composition root."""

"""What Hermetic costs, beside an idiomatic kopf operator that makes the same children on the same API server."""

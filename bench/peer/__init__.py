"""The operator that Hermetic is measured against: written as kopf's documentation teaches, and by nothing else slowed.

It renders its children with the product's own builders, so that only the manner of operating differs.
"""

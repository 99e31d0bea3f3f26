"""Where the proof of a cluster stands: evidence from outside, the cluster's own objects and the probe, as one verdict.

`looks` is what there is to go by, `verdict` what follows from it, `telling` the status that says so. Pure.
"""

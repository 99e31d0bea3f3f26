"""How hard properties are tried."""

from __future__ import annotations

import os

from hypothesis import HealthCheck, settings

# Enough to find what is wrong, and no clock on a machine that others use as well. CI tries the same examples
# of the same commit every time; elsewhere each run tries new ones.
settings.register_profile(
    "steady",
    deadline=None,
    max_examples=60,
    print_blob=True,
    derandomize="CI" in os.environ,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("steady")

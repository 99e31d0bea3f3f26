"""Groups of slow tests that several files share, and how many of each run outside CI (tests/sampling.py)."""

from __future__ import annotations

import pytest

AZURE_AUDITS = pytest.mark.sampled(25, of="audits of a simulated Azure")
AZURE_STAND_IN = pytest.mark.sampled(20, of="the stand-in of Azure")
ENGINE_STAND_IN = pytest.mark.sampled(20, of="the stand-in of engines")
LONG = pytest.mark.sampled(5, of="long tests without a cluster")
SHIPPING = pytest.mark.sampled(15, of="image, bundle, chart and command line")
TEST_BED = pytest.mark.sampled(12, of="the test bed")
TEST_BED_CONTROL_PLANE = pytest.mark.sampled(0, of="the control plane of the test bed")
TEST_BED_NODE = pytest.mark.sampled(0, of="the node of the test bed")

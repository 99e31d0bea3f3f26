"""The newest committed table, derived once more from that release's source distribution (44 MB the first time)."""

from __future__ import annotations

import pytest

from testbed.package_index import IndexUnavailable, choose, configured_index, fetch
from testbed.vllm_tables.derive import TABLES
from tests.sampled_groups import LONG


@LONG
def test_the_committed_table_is_what_the_source_distribution_says():
    version = TABLES.committed()[-1]
    try:
        index = configured_index()
        release = choose(TABLES.offered(index), version)
        fetch(index, release)
    except IndexUnavailable as error:
        pytest.skip(f"no package index to derive the table of vLLM {version} from: {error}")
    assert (TABLES.folder / f"{release.minor}.json").read_bytes() == TABLES.derive(index, release)

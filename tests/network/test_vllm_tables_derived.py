"""The newest committed table, derived once more from that release's source distribution (44 MB the first time)."""

from __future__ import annotations

import pytest

from testbed.vllm_tables.derive import TABLES, committed_versions, derive
from testbed.vllm_tables.package_index import IndexTrouble, choose, configured_index, fetch, source_distributions


def test_the_committed_table_is_what_the_source_distribution_says():
    version = committed_versions()[-1]
    try:
        index = configured_index()
        release = choose(source_distributions(index), version)
        fetch(index, release)
    except IndexTrouble as trouble:
        pytest.skip(f"no package index to derive the table of vLLM {version} from: {trouble}")
    assert (TABLES / f"{release.minor}.json").read_bytes() == derive(index, release)

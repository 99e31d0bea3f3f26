"""The newest committed table of SGLang, derived once more from that release's wheel (39 MB the first time)."""

from __future__ import annotations

import pytest

from testbed.sglang_tables.derive import SGLANG, TABLES, committed_versions, derive
from testbed.vllm_tables.package_index import IndexTrouble, choose, configured_index, fetch, source_distributions


def test_the_committed_table_is_what_the_wheel_says():
    version = committed_versions()[-1]
    try:
        index = configured_index()
        release = choose(source_distributions(index, SGLANG), version)
        fetch(index, release)
    except IndexTrouble as trouble:
        pytest.skip(f"no package index to derive the table of SGLang {version} from: {trouble}")
    assert (TABLES / f"{version}.json").read_bytes() == derive(index, release)

"""Which flags and environment variables each supported SGLang release understands.

SGLang changes its flags with every 0.5.x, so each has a table of its own; a post-release reads that of its release. The
tables are derived from SGLang's own wheels (`python -m testbed.sglang_tables.derive`).
"""

from __future__ import annotations

from hermetic.engines.flag_tables import Dialect, TableFolder

TABLES = TableFolder(__name__, Dialect(product="SGLang", dashes=False), release=r"v?(\d+\.\d+\.\d+)(?:\.post\d+)?\Z")

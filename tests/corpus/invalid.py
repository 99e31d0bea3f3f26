"""Everything that must be refused, by `hermetic validate` and by the API server."""

from __future__ import annotations

from tests.corpus.cases import Invalid
from tests.corpus.refused_adapters import ADAPTERS
from tests.corpus.refused_endpoints import ENDPOINTS
from tests.corpus.refused_engines import ARGUMENTS, IMAGES, VARIABLES
from tests.corpus.refused_groups import GROUPS
from tests.corpus.refused_shapes import NUMBERS, OTHERS
from tests.corpus.refused_unions import UNIONS
from tests.corpus.refused_weights import WEIGHTS

INVALID: tuple[Invalid, ...] = (
    *UNIONS,
    *IMAGES,
    *ARGUMENTS,
    *VARIABLES,
    *WEIGHTS,
    *ADAPTERS,
    *ENDPOINTS,
    *NUMBERS,
    *OTHERS,
    *GROUPS,
)

"""The constants that Hypothesis puts into examples: those of the product and of the test bed, in every process.

Hypothesis draws some texts and numbers from the constants of all local modules that the process has loaded
(`hypothesis.internal.conjecture.providers`). A worker of pytest-xdist loads modules as its tests need them, so
`derandomize` alone gives each run of a commit other examples. Hypothesis has no setting for it: `fix_constants` puts
the constants of fixed folders in the place of those of loaded modules.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path
from types import ModuleType

from hypothesis.internal.conjecture import providers
from hypothesis.internal.constants_ast import Constants, constants_from_module
from hypothesis.internal.floats import float_to_int
from sortedcontainers import SortedSet

ROOT = Path(__file__).resolve().parent.parent
FOLDERS = ("operator/hermetic", "testbed")


def fix_constants() -> None:
    """Makes each example a function of the files in FOLDERS, of the test and of its seed."""
    providers.CONSTANTS_CACHE.cache.clear()
    constants_of_folders()  # now: within the first example it would count as slow
    providers._get_local_constants = constants_of_folders


@cache
def constants_of_folders() -> Constants:
    """The constants of every module in FOLDERS, sorted; those of a file are cached in `.hypothesis`."""
    constants = Constants()
    for path in sorted(path for folder in FOLDERS for path in (ROOT / folder).rglob("*.py")):
        module = ModuleType(path.stem)
        module.__file__ = str(path)
        constants |= constants_from_module(module)
    # an order that does not depend on the hashes of texts, which differ from process to process
    by_value = Constants(
        integers=SortedSet(), floats=SortedSet(key=float_to_int), bytes=SortedSet(), strings=SortedSet()
    )
    return by_value | constants

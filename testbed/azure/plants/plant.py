"""What a plant is: one change to a sealed estate that opens one path, and what must then be found."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from testbed.azure.estate import Estate
from testbed.azure.references import refer_back

# the ARM id that the finding names; a tuple where the facts allow more than one to be "the thing to change"
Named = str | tuple[str, ...]
Change = Callable[[Estate], "Named | list[Named]"]

SEALED, FILTERED = "sealed", "filtered"


@dataclass(frozen=True)
class Expected:
    """A finding that must be there, as Fail. resources: any of them may be named. severity: None where any will do."""

    check: str
    resources: tuple[str, ...]
    severity: str | None

    @property
    def resource(self) -> str:
        return self.resources[0]

    def is_met_by(self, check: str, resource: str, severity: str) -> bool:
        names = {name.lower().rstrip("/") for name in self.resources}
        return check == self.check and resource.lower().rstrip("/") in names and self.severity in {None, severity}


@dataclass(frozen=True)
class Plant:
    """name: of the function that changes the estate; its docstring says what was opened.

    also: check ids that may fail beside it, on whatever resource. spots: plants that share one undo one another. needs:
    fields of the site that must not be empty. depends: the severity changes when other paths are open as well.
    hides: it leaves a subscription that is not readable, so that other checks may say Unknown instead of Fail.
    """

    name: str
    check: str
    severity: str
    change: Change
    also: frozenset[str]
    spots: frozenset[str]
    needs: tuple[str, ...]
    profiles: tuple[str, ...]
    fits_also: Callable[[Estate], bool]
    depends: bool
    hides: bool

    @property
    def title(self) -> str:
        return (self.change.__doc__ or self.name).strip()

    def fits(self, estate: Estate) -> bool:
        """Whether this estate has what the plant changes."""
        has_all = all(getattr(estate.site, need) for need in self.needs)
        return has_all and estate.profile in self.profiles and self.fits_also(estate)

    def into(self, estate: Estate) -> list[Expected]:
        """Opens the path in this estate and says what must be found."""
        named = self.change(estate)
        refer_back(estate)
        each = named if isinstance(named, list) else [named]
        return [Expected(self.check, (one,) if isinstance(one, str) else one, self.severity) for one in each]


PLANTS: dict[str, Plant] = {}
"""Every plant by name. Filled by the modules beside this one; `testbed.azure.plants` has them all."""


def plant(  # noqa: PLR0913 - the columns of a table
    check: str,
    severity: str,
    *,
    also: tuple[str, ...] = (),
    spot: str = "",
    needs: tuple[str, ...] = (),
    profiles: tuple[str, ...] = (SEALED, FILTERED),
    fits: Callable[[Estate], bool] = lambda _: True,
    depends: bool = False,
    hides: bool = False,
) -> Callable[[Change], Change]:
    """Makes a plant of a function that changes an estate and returns the id that the finding must name.

    `spot` may name several, with blanks between.
    """

    def taken(change: Change) -> Change:
        name = getattr(change, "__name__", check).strip("_")
        if name in PLANTS:
            raise ValueError(f"two plants are called {name}")
        PLANTS[name] = Plant(
            name,
            check,
            severity,
            change,
            frozenset(also),
            frozenset((spot or name).split()),
            needs,
            profiles,
            fits,
            depends,
            hides,
        )
        return change

    return taken

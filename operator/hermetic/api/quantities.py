"""Kubernetes quantities as exact numbers."""

from __future__ import annotations

import re
from decimal import ROUND_CEILING, Decimal

_FORM = re.compile(r"^([+-]?[0-9]*\.?[0-9]+|[+-]?[0-9]+\.)([eE][+-]?[0-9]+|[numkMGTPE]|[KMGTPE]i)?$")
_UNITS = {
    **{unit: Decimal(10) ** power for unit, power in zip("num", (-9, -6, -3), strict=True)},
    **{unit: Decimal(1000) ** power for power, unit in enumerate("kMGTPE", start=1)},
    **{f"{unit}i": Decimal(1024) ** power for power, unit in enumerate("KMGTPE", start=1)},
    "": Decimal(1),
}


def parse_quantity(text: str | int) -> Decimal:
    """The number of '400Gi', '500m' or 2, in base units (bytes, CPUs). Raises ValueError for anything else."""
    matched = _FORM.match(str(text))
    if matched is None:
        raise ValueError(f"'{text}' is not a quantity such as '400Gi' or '500m'")
    number, unit = matched.group(1), matched.group(2) or ""
    if unit[:1] in "eE" and len(unit) > 1 and unit not in _UNITS:
        return Decimal(number + unit)
    return Decimal(number) * _UNITS[unit]


def memory_quantity(size: Decimal | int) -> str:
    """Bytes as a quantity, rounded up to whole MiB, in GiB where it is a whole number of them."""
    mebibytes = -(-int(size) // 1024**2)
    return f"{mebibytes // 1024}Gi" if mebibytes % 1024 == 0 else f"{mebibytes}Mi"


def add_memory(*quantities: str) -> str:
    """The sum of quantities of memory, as `memory_quantity` writes it. Raises ValueError as `parse_quantity` does."""
    return memory_quantity(sum(map(parse_quantity, quantities), Decimal(0)).to_integral_value(ROUND_CEILING))

"""Rates of GPUs below the floors of their VM size: those of the configuration decide, those of the catalogue warn."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from hermetic.api.configuration import Configuration
from hermetic.plan.accelerator_results import AcceleratorResult
from hermetic.sizing.catalogue import rate_floors, sizes

FIELDS = {
    "teraflops": "teraflops",
    "memory_gbs": "memoryGBs",
    "host_gbs": "hostGBs",
    "peer_gbs": "peerGBs",
    "all_reduce_gbs": "allReduceGBs",
}
"""The rates that may have a floor, by the key of floors.toml, and their names in configuration and status."""


@dataclass(frozen=True, slots=True)
class LowRate:
    """A rate below its floor. `confirmed`: a value that Hermetic or the platform team stands for."""

    name: str
    rate: float
    floor: float
    confirmed: bool

    def __str__(self) -> str:
        note = "" if self.confirmed else ", a published value that is not confirmed for these checks"
        return f"{self.name} is {self.rate:.1f}, below the floor of {self.floor:g}{note}"


def shown_rates(result: AcceleratorResult) -> dict[str, float]:
    """The rates by their names in the status: of copies between host and GPU the slower direction."""
    host = [result.rates[name] for name in ("hostToDeviceGBs", "deviceToHostGBs") if name in result.rates]
    rates = {**result.rates, **({"hostGBs": min(host)} if host else {})}
    return {name: rates[name] for name in FIELDS.values() if name in rates}


def low_rates(result: AcceleratorResult, instance_type: str, configuration: Configuration) -> Iterator[LowRate]:
    """The rates below a floor of the VM size. An all-reduce over a part of its GPUs has none."""
    rates, size = shown_rates(result), sizes().get(instance_type)
    for name, (floor, confirmed) in _floors(instance_type, configuration).items():
        is_partial = name == "allReduceGBs" and (size is None or size.gpus.value != result.gpus)
        if name in rates and rates[name] < floor and not is_partial:
            yield LowRate(name, rates[name], floor, confirmed)


def _floors(instance_type: str, configuration: Configuration) -> Mapping[str, tuple[float, bool]]:
    """(floor, whether it is confirmed) by the name of the rate."""
    shipped = {
        FIELDS[key]: (value.value, value.confirmed) for key, value in rate_floors().get(instance_type, {}).items()
    }
    configured = configuration.preflight.floors.get(instance_type)
    own = {FIELDS[key]: (float(rate), True) for key, rate in dict(configured or ()).items() if rate is not None}
    return {**shipped, **own}

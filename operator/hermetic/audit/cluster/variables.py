"""Environment variables of a container, from its template and from ConfigMaps; Secrets are named and never read."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from hermetic.audit.cluster.objects import everywhere
from hermetic.audit.estate.estate import Estate, derived
from hermetic.audit.estate.kubernetes.calls import ConfigMap
from hermetic.audit.estate.kubernetes.config_values import MORE, NIM
from hermetic.audit.estate.kubernetes.environment import NOT_KEPT, EnvSource, EnvVar
from hermetic.audit.estate.kubernetes.pods import Container, Pod
from hermetic.audit.estate.observation import Listing, Observation
from hermetic.errors import FactDamaged

Maps = Mapping[tuple[str, str], ConfigMap]
SEE_WHAT_IT_HOLDS = """
The audit reads no Secret. See by name and size what it holds:
kubectl --namespace NAMESPACE describe secret SECRET_NAME
Then set the variable in the pod template or from a ConfigMap, or accept this by an exception.
"""


@dataclass(frozen=True, slots=True)
class ConfigMaps:
    """All ConfigMaps of the cluster, reduced to what variables need."""

    listing: Listing[ConfigMap]
    by_name: Maps

    def variables(self, pod: Pod, container: Container) -> tuple[EnvVar, ...]:
        """All known variables; those of `env` override those of `envFrom`."""
        variables_by_name: dict[str, EnvVar] = {}
        for source in container.env_from or ():
            variables_by_name |= {variable.name: variable for variable in self._taken_whole(pod.namespace, source)}
        variables_by_name |= {variable.name: self._settled(pod.namespace, variable) for variable in container.env or ()}
        return tuple(variables_by_name.values())

    def unread(self, pod: Pod) -> tuple[Observation, ...]:
        """The listing of ConfigMaps where it is incomplete and a container of the pod takes variables from one."""
        depends = any(True for container in pod.containers for _ in _names(container))
        return (self.listing,) if depends and self.listing.problem is not None else ()

    def beyond(self, pod: Pod) -> tuple[str, ...]:
        """ConfigMaps that the pod takes variables from and that were not kept in full."""
        names = dict.fromkeys(name for container in pod.containers for name in _names(container))
        named_maps = ((name, self.by_name.get((pod.namespace, name))) for name in names)
        return tuple(
            f"ConfigMap {name}"
            for name, config_map in named_maps
            if config_map is not None and MORE in (config_map.variables or {})
        )

    def _taken_whole(self, namespace: str, source: EnvSource) -> Iterator[EnvVar]:
        name = _name_of(source.config_map_ref)
        if (source.prefix or "").startswith(NIM):  # independent of its keys
            yield _variable(NIM, NOT_KEPT)
        for key, value in self._kept(namespace, name).items():
            if key != MORE:
                yield _variable(f"{source.prefix or ''}{key}", value)

    def _settled(self, namespace: str, variable: EnvVar) -> EnvVar:
        if variable.config_map is None:
            return variable
        name, key = variable.config_map
        return _variable(variable.name, self._kept(namespace, name).get(key, NOT_KEPT))

    def _kept(self, namespace: str, name: str) -> Mapping[str, str]:
        config_map = self.by_name.get((namespace, name))
        return (config_map.variables or {}) if config_map is not None else {}


@derived
def config_maps(estate: Estate) -> ConfigMaps:
    """The ConfigMaps of the cluster; a cached result."""
    listing = everywhere(estate, ConfigMap)
    by_name = {}
    for config_map in listing:
        try:
            by_name[(config_map.namespace, config_map.metadata.name)] = config_map
        except FactDamaged:
            continue
    return ConfigMaps(listing, by_name)


def secrets_taken_whole(pod: Pod) -> tuple[str, ...]:
    """Names of Secrets that containers take with `envFrom`: all their keys become variables."""
    sources = (source for container in pod.containers for source in container.env_from or ())
    return tuple(dict.fromkeys(_name_of(source.secret_ref) for source in sources if source.secret_ref))


def _names(container: Container) -> Iterator[str]:
    yield from (_name_of(source.config_map_ref) for source in container.env_from or () if source.config_map_ref)
    yield from (variable.config_map[0] for variable in container.env or () if variable.config_map is not None)


def _name_of(reference: Mapping[str, object] | None) -> str:
    return str((reference or {}).get("name") or "")


def _variable(name: str, value: str) -> EnvVar:
    return EnvVar.model_validate(EnvVar.trimmed({"name": name, "value": value}))

"""The base of every typed fact: strict parsing that keeps readable fields of a damaged answer and guesses nothing.

ARM wraps most fields in `properties`; the models have both levels as one, and names are compared without regard to
case: `nodePublicIPPrefixID` spelt in any other way would look like a field that is not set. A field of the wrong type
is left out, and reading it raises `FactDamaged`: the check that needs it is Unknown, all others are not affected. Keys
that are data (labels, annotations) keep their spelling where the field is an `arm_fields.FreeMap`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, ClassVar, Self, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from hermetic.audit.estate.arm_fields import MISSHAPEN, child, flat, spelling
from hermetic.audit.estate.questions import Body, Problem, Source
from hermetic.audit.model.findings import Evidence
from hermetic.errors import FactDamaged

Path = tuple[str | int, ...]


class Part(BaseModel):
    """An object inside a resource, such as a rule of a network security group. Optional is the only union allowed."""

    # Most runs meet few of these models: the validator of one is built when it is first used.
    model_config = ConfigDict(
        strict=True, frozen=True, extra="ignore", alias_generator=spelling, validate_by_name=False, defer_build=True
    )

    misshapen: None = Field(default=None, repr=False)
    """Never read: a value here marks a damaged answer (see `arm_fields.MISSHAPEN`)."""

    # A slot and not a private attribute of pydantic, which would cost two dicts for each of tens of thousands of parts.
    __slots__ = ("_damage",)
    _damage: ClassVar[Any]

    def __getattr__(self, name: str) -> Any:
        # Called only for attributes that are missing; an undamaged object has every field.
        if name != "_damage" and name in (damage := self._damages()):
            raise damage[name]
        return super().__getattr__(name)  # type: ignore[misc]

    def _damages(self) -> dict[str, FactDamaged]:
        try:
            damage: dict[str, FactDamaged] = object.__getattribute__(self, "_damage")
        except AttributeError:
            return {}
        return damage

    @property
    def is_damaged(self) -> bool:
        """Whether a field of it could not be read; parts inside it have their own."""
        return bool(self._damages())

    def salvaged(self) -> tuple[Self, tuple[FactDamaged, ...]]:
        """A copy with the defaults of its unreadable fields, and their damage; itself where all fields can be read.

        For lists of which one item must not hide the others. Parts inside it keep their own damage.
        """
        damages = self._damages()
        if not damages:
            return self, ()
        fields = type(self).model_fields
        defaults = {name: None if fields[name].is_required() else fields[name].default for name in damages}
        return self.model_copy(update=defaults), tuple(damages.values())

    def lose(self, field: str, damage: FactDamaged) -> None:
        """Remove the field: reading it raises `damage` from now on."""
        self.__dict__.pop(field, None)
        object.__setattr__(self, "_damage", {**self._damages(), field: damage})


MODELS: dict[str, list[type[Resource]]] = {}
"""The models of each type of Azure resource, by the type in lower case."""


class Reference(Part):
    """A pointer to another resource."""

    id: str


class Resource(Part):
    """One resource with its evidence. `arm` declares the type and the api-version with which it is read.

    `TYPE` is the resource type as its provider writes it, `SOURCE` the source that answers. For POST actions `ACTION`
    is the name of the action on the resource of type `TYPE`.
    """

    SOURCE: ClassVar[Source] = "azure"
    TYPE: ClassVar[str]
    API_VERSION: ClassVar[str] = ""
    ACTION: ClassVar[str] = ""
    WRAPPED: ClassVar[bool] = True
    """Whether the facts are in `properties`: a body without them is damaged as a whole."""
    READS_ITS_FIELDS_ONLY: ClassVar[bool] = False
    """Set where `read` is overridden and still reads declared fields only: see `projection`."""

    id: str = ""
    name: str = ""

    __slots__ = ("_evidence",)
    _evidence: ClassVar[Any]

    @property
    def evidence(self) -> tuple[Evidence, ...]:
        """The exchanges that it comes from."""
        try:
            evidence: tuple[Evidence, ...] = object.__getattribute__(self, "_evidence")
        except AttributeError:
            return ()
        return evidence

    @property
    def problem(self) -> Problem | None:
        """None: a field that could not be read raises when it is accessed."""
        return None

    def writer(self, *_field_paths: tuple[str, ...]) -> str:
        """The last writer of the first of these fields that has one, or else of the object; "" where unknown."""
        return ""

    @classmethod
    def read(cls, body: Body) -> Self:
        """Parse the fact from an answer; unreadable fields are removed and recorded as damage. Never raises."""
        fields = flat(body.value, cls)
        name = str(fields.get("id") or fields.get("name") or cls.TYPE)
        resource, damage = cls._salvaged(fields)
        if cls.WRAPPED and not isinstance(child(body.value, "properties"), Mapping):
            inner = cls.model_fields.keys() - {"id", "name"}
            damage = {**damage, **{(spelling(field),): "properties: should be an object" for field in inner}}
        return resource.seen_by(body.evidence, name, damage)

    def seen_by(self, evidence: tuple[Evidence, ...], name: str = "", damage: Mapping[Path, str] | None = None) -> Self:
        """Set its evidence and its damage; returns itself. For implementations of `read`."""
        object.__setattr__(self, "_evidence", evidence)
        for path, message in (damage or {}).items():
            _lose(self, path, FactDamaged(f"{name}: {message}", resource=name, evidence=evidence))
        return self

    @classmethod
    def _salvaged(cls, fields: dict[str, Any]) -> tuple[Self, dict[Path, str]]:
        damage: dict[Path, str] = {}
        while True:
            try:
                resource: Any = cls.model_validate(fields)
            except ValidationError as error:
                for problem in error.errors(include_url=False, include_input=False):
                    path = _cut(fields, problem["loc"])
                    message = f"{'.'.join(str(part) for part in problem['loc'])}: {problem['msg'].lower()}"
                    if path in damage:  # required, and no placeholder fits its type: the whole object is lost
                        resource = cls.model_construct()
                        return resource, dict.fromkeys(((spelling(field),) for field in cls.model_fields), message)
                    damage[path] = message
            else:
                return resource, damage


R = TypeVar("R", bound=Resource)


def arm(kind: str, api_version: str, action: str = "") -> Callable[[type[R]], type[R]]:
    """Declare the decorated model as that of an Azure resource type, or of what a POST action on it returns."""

    def declare(model: type[R]) -> type[R]:
        model.TYPE, model.API_VERSION, model.ACTION, model.WRAPPED = kind, api_version, action, not action
        MODELS.setdefault(kind.lower(), []).append(model)
        return model

    return declare


def _cut(fields: dict[str, Any], loc: tuple[int | str, ...]) -> Path:
    """Remove the damaged value from `fields`; return its path: the innermost field that could be removed."""
    holders: list[tuple[dict[str, Any], Path]] = []
    here: Any = fields
    for depth, step in enumerate(loc):
        if isinstance(here, dict) and step in here:
            holders.append((here, loc[: depth + 1]))
            here = here[str(step)]
        elif isinstance(here, list) and isinstance(step, int) and step < len(here):
            here = here[step]
        else:
            break
    if not holders:
        # A required field of the resource itself is missing: there is nothing to remove, so set a placeholder.
        fields[str(loc[0])] = ""
        return (str(loc[0]),)
    holder, path = holders[-1]
    holder.pop(str(path[-1]), None)
    return path


def _lose(part: Part, path: Path, damage: FactDamaged) -> None:
    here: Any = part
    for step in path[:-1]:
        if isinstance(here, Part):
            here = here.__dict__.get(_field(here, str(step)))
        elif isinstance(here, list) and isinstance(step, int):
            here = here[step] if step < len(here) else None
        else:
            here = None
    if isinstance(here, Part):
        everything = set(type(here).model_fields) - {"id", "name"}
        for field in everything if path[-1] == MISSHAPEN else (_field(here, str(path[-1])),):
            here.lose(field, damage)
    elif len(path) > 1:
        _lose(part, path[:-1], damage)  # inside a value without fields of its own: all of it is damaged


def _field(part: Part, spelt: str) -> str:
    return next((name for name in type(part).model_fields if spelling(name) == spelt), spelt)

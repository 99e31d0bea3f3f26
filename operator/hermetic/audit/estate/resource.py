"""The base of every typed fact: read strictly, salvaged where damaged, never guessed.

ARM wraps most fields in `properties`; the models lay both levels flat, and names are compared without regard to case:
`nodePublicIPPrefixID` spelt in any other way would look like a field that is not there. A field of the wrong type is
left out, and whoever reads it meets `FactDamaged`: the check that needed it is Unknown, all others go on.
Keys that are data (labels, annotations) keep their spelling where the field is a `FreeMap` of `spelling`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Self, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from hermetic.audit.estate.arm_fields import MISSHAPEN, child, flat, spelling
from hermetic.audit.estate.questions import Body, Problem, Source
from hermetic.audit.findings import Evidence
from hermetic.errors import FactDamaged

Path = tuple[str | int, ...]


class Part(BaseModel):
    """An object inside a resource, such as a rule of a network security group. No unions but with None."""

    model_config = ConfigDict(
        strict=True, frozen=True, extra="ignore", alias_generator=spelling, validate_by_name=False
    )

    misshapen: None = Field(default=None, repr=False)
    """Never read: whatever stands there is a defect of the answer (see `spelling.MISSHAPEN`)."""

    # A slot, and no private attribute of pydantic: that would cost each of ten thousands of parts two maps.
    __slots__ = ("_damage",)
    _damage: ClassVar[Any]

    def __getattr__(self, name: str) -> Any:
        # Asked only for what is not there: every field of a whole object is.
        if name != "_damage" and name in (damage := self._damages()):
            raise damage[name]
        return super().__getattr__(name)  # type: ignore[misc]

    def _damages(self) -> dict[str, FactDamaged]:
        try:
            found: dict[str, FactDamaged] = object.__getattribute__(self, "_damage")
        except AttributeError:
            return {}
        return found

    @property
    def is_damaged(self) -> bool:
        """Whether a field of it could not be read; of the parts inside it each knows its own."""
        return bool(self._damages())

    def lose(self, field: str, damage: FactDamaged) -> None:
        """From now on, who reads this field meets the damage."""
        self.__dict__.pop(field, None)
        object.__setattr__(self, "_damage", {**self._damages(), field: damage})


MODELS: dict[tuple[Source, str], list[type[Resource]]] = {}
"""Every kind of resource that was ever declared, by who answers and the type in lower case."""


class Reference(Part):
    """A pointer to another resource."""

    id: str


class Resource(Part):
    """One resource with its evidence. Subclasses say of which type they are and with which api-version it is read.

    `TYPE` is the resource type as its provider writes it, `SOURCE` who answers. For POST actions `ACTION` names the
    action, asked on the resource of type `TYPE`.
    """

    SOURCE: ClassVar[Source] = "azure"
    TYPE: ClassVar[str]
    API_VERSION: ClassVar[str] = ""
    ACTION: ClassVar[str] = ""
    WRAPPED: ClassVar[bool] = True
    """Whether what matters is in `properties`: without them, the body says nothing."""
    READS_ITS_FIELDS_ONLY: ClassVar[bool] = False
    """Set where `read` is overridden and still looks at nothing but the fields: see `projection`."""

    id: str = ""
    name: str = ""

    __slots__ = ("_evidence",)
    _evidence: ClassVar[Any]

    @property
    def evidence(self) -> tuple[Evidence, ...]:
        """The exchanges that brought it."""
        try:
            found: tuple[Evidence, ...] = object.__getattribute__(self, "_evidence")
        except AttributeError:
            return ()
        return found

    @property
    def problem(self) -> Problem | None:
        """None: what cannot be read of it speaks up when it is read."""
        return None

    def writer(self, *_places: tuple[str, ...]) -> str:
        """Who wrote the first of these fields that is written, or else all of it, last; "" where it is not known."""
        return ""

    @classmethod
    def __pydantic_init_subclass__(cls, **_: Any) -> None:
        MODELS.setdefault((cls.SOURCE, getattr(cls, "TYPE", "").lower()), []).append(cls)

    @classmethod
    def read(cls, body: Body) -> Self:
        """The typed fact of an answer; what cannot be read is left out and noted. Never raises."""
        fields = flat(body.value, cls)
        name = str(fields.get("id") or fields.get("name") or cls.TYPE)
        found, damage = cls._salvaged(fields)
        if cls.WRAPPED and not isinstance(child(body.value, "properties"), Mapping):
            inner = cls.model_fields.keys() - {"id", "name"}
            damage = {**damage, **{(spelling(field),): "properties: should be an object" for field in inner}}
        return found.seen_by(body.evidence, name, damage)

    def seen_by(self, evidence: tuple[Evidence, ...], name: str = "", damage: Mapping[Path, str] | None = None) -> Self:
        """The same, with what it was seen by and what of it is damaged; for those who read it."""
        object.__setattr__(self, "_evidence", evidence)
        for path, words in (damage or {}).items():
            _lose(self, path, FactDamaged(f"{name}: {words}", resource=name, evidence=evidence))
        return self

    @classmethod
    def _salvaged(cls, fields: dict[str, Any]) -> tuple[Self, dict[Path, str]]:
        damage: dict[Path, str] = {}
        while True:
            try:
                found: Any = cls.model_validate(fields)
            except ValidationError as error:
                for problem in error.errors(include_url=False, include_input=False):
                    path = _cut(fields, problem["loc"])
                    words = f"{'.'.join(str(part) for part in problem['loc'])}: {problem['msg'].lower()}"
                    if path in damage:  # required, and of a type that nothing can stand in for: all of it is lost
                        found = cls.model_construct()
                        return found, dict.fromkeys(((spelling(field),) for field in cls.model_fields), words)
                    damage[path] = words
            else:
                return found, damage


R = TypeVar("R", bound=Resource)


def _cut(fields: dict[str, Any], loc: tuple[int | str, ...]) -> Path:
    """Take what is broken out of the fields; returns where it was: the innermost field that could be left out."""
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
        # A required field of the resource itself is not there: nothing to cut, so put in what will do.
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
        _lose(part, path[:-1], damage)  # inside something without fields of its own: all of that is damaged


def _field(part: Part, spelt: str) -> str:
    return next((name for name in type(part).model_fields if spelling(name) == spelt), spelt)

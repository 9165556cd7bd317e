"""Parameter types and values of them, made at random: ordinary types of tools, and types that hide or confuse their
values."""

from __future__ import annotations

import dataclasses
import datetime as dt
import enum
import math
import random
from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from itertools import count
from pathlib import PurePosixPath
from types import UnionType
from typing import Annotated, Any, Literal, NamedTuple, NotRequired, Union, cast, get_args, get_origin
from uuid import UUID

from pydantic import (
    AfterValidator,
    AliasChoices,
    AliasPath,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    PrivateAttr,
    RootModel,
    SecretBytes,
    SecretStr,
    StringConstraints,
    create_model,
    model_validator,
)
from typing_extensions import TypedDict

Made = tuple[Any, Callable[[], Any]]
"""A type, and a strategy for values that may be given for it."""


class Number(enum.IntEnum):
    ONE = 1
    TWO = 2


class Mixed(enum.Enum):
    NUMBER = 1
    TEXT = "1"
    PAIR = (1, 2)
    BYTES = b"1"


class Row(TypedDict):
    a: int | str
    b: NotRequired[Any]


class Pair(NamedTuple):
    a: Any
    b: int | str = 1


class Tags(RootModel[list[Any]]):
    pass


@dataclasses.dataclass
class Lost:
    a: int | str
    b: dataclasses.InitVar[Any] = None

    def __post_init__(self, b: Any) -> None:
        self.kept = b


@dataclasses.dataclass(slots=True)
class Slim:
    a: int | str
    b: Any = None


class Private(BaseModel):
    a: int | str = 0
    _b: Any = PrivateAttr(default=None)

    @model_validator(mode="wrap")
    @classmethod
    def keep(cls, value: Any, handler: Any) -> Any:
        made = handler({"a": value.get("a", 0)} if isinstance(value, Mapping) else value)
        if isinstance(value, Mapping):
            made._b = cast("Mapping[str, Any]", value).get("b")
        return made


class Open(BaseModel):
    model_config = ConfigDict(extra="allow")
    a: int | str = Field(validation_alias=AliasChoices(AliasPath("b", "a"), AliasPath("b", 0), "a", "c"))


class Alike(BaseModel):
    model_config = ConfigDict(validate_by_name=True)
    a: Any = Field(default=None, validation_alias="c")
    b: Any = Field(default=None, validation_alias="c")


class Everything(BaseModel):
    """Calls all of its kind equal."""

    a: Any = None

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Everything)

    def __hash__(self) -> int:
        return 1


class Derived(BaseModel):
    a: int | str = 0
    b: Any = None

    @model_validator(mode="before")
    @classmethod
    def fold(cls, value: Any) -> Any:
        return {"a": str(value.get("a")), "b": repr(value.get("b"))} if isinstance(value, dict) else value


class Attribute(BaseModel):
    """Keeps its argument outside of any field."""

    a: int | str = 0

    @model_validator(mode="wrap")
    @classmethod
    def keep(cls, value: Any, handler: Any) -> Any:
        made = handler(value)
        made.__dict__["hidden"] = repr(value)
        return made


_COUNTED = count()
CLASSES = (Row, Pair, Tags, Lost, Slim, Private, Open, Alike, Everything, Derived, Attribute)
HOSTILE_FORMS: tuple[Any, ...] = (
    Annotated[Any, BeforeValidator(lambda value: value.encode() if isinstance(value, str) else value)],
    Annotated[Any, BeforeValidator(lambda value: str(value))],
    Annotated[Any, AfterValidator(lambda value: (value, next(_COUNTED)))],
    Annotated[Any, BeforeValidator(lambda value: SecretStr(value) if value == "a" else value)],
    Annotated[int, AfterValidator(lambda value: value // 2)],
    Annotated[str, AfterValidator(str.lower)],
    Annotated[str, StringConstraints(strip_whitespace=True)],
)
LEAVES: tuple[Any, ...] = (
    *(int, float, str, bool, bytes, Any, Any, object, None, Decimal, UUID, PurePosixPath, complex),
    *(dt.date, dt.datetime, dt.time, dt.timedelta, SecretStr, SecretBytes, Number, Mixed),
    *(list, dict, tuple, set, Sequence[Any], Mapping[Any, Any]),
    *(Literal[1, "1"], Literal[True, 1, "true"], Literal["a", None], Literal[0, False]),  # type: ignore[valid-type]
    *CLASSES,
    *HOSTILE_FORMS,
)
_MOMENT = dt.datetime(2026, 1, 1, 10)
SCALARS: tuple[Any, ...] = (
    *(0, 1, 2, -1, True, False, None, 0.0, -0.0, 1.0, 1.5, math.inf, -math.inf, math.nan, 10**20, 1e20),
    *(
        "",
        "0",
        "1",
        "2",
        "1.0",
        "01",
        " 1",
        "true",
        "True",
        "null",
        "None",
        "Infinity",
        "inf",
        "-Infinity",
        "NaN",
        "nan",
    ),
    *("a", "A", " a", "eA==", "YQ==", "x", b"", b"x", b"a", b"1", "2026-01-01", "2026-01-01T10:00:00", "10:00:00"),
    *("2026-01-01T10:00:00Z", "P1D", "PT1S", "86400", dt.date(2026, 1, 1), _MOMENT, _MOMENT.replace(fold=1)),
    *(_MOMENT.replace(tzinfo=dt.UTC), dt.time(10), dt.timedelta(days=1), Decimal(1), Decimal("1.0"), Decimal("1E+20")),
    *(UUID(int=1), str(UUID(int=1)), UUID(int=1).hex, PurePosixPath("a"), complex(1, 0), "1+0j", "$t", "v"),
    *(SecretStr("a"), SecretStr("b"), SecretStr(""), SecretBytes(b"a"), "**********", "********** #" + "0" * 32),
    *(Number.ONE, Mixed.TEXT, {"$t": "bytes", "v": "eA=="}, {"$t": "tuple", "v": [1]}, {}, [], (), frozenset[Any]()),
)


FITTING: dict[Any, tuple[Any, ...]] = {
    int: (0, 1, 2, "1", True, 1.0, 10**20, "01"),
    float: (0.0, -0.0, 1, 1.0, "1", math.inf, "NaN", "-Infinity", 1e20, 10**20),
    bool: (True, False, 1, "true", "0"),
    str: ("1", "a", "A", "eA==", "NaN", "", "true", " a"),
    bytes: ("eA==", b"x", "YQ==", b"a", b"1", "MQ=="),
    Decimal: ("1", "1.0", 1, "1E+20", Decimal("0.10"), "-0"),
    UUID: (UUID(int=1), str(UUID(int=1)), UUID(int=2).hex),
    PurePosixPath: ("a", "a/", "./a", "a/../a", PurePosixPath("a")),
    dt.date: ("2026-01-01", dt.date(2026, 1, 1), "2026-01-02", 0),
    dt.datetime: ("2026-01-01T10:00:00", "2026-01-01T10:00:00Z", "2026-01-01T11:00:00+01:00", _MOMENT, 0),
    dt.time: ("10:00:00", dt.time(10), dt.time(10, fold=1), "10:00:00Z"),
    dt.timedelta: ("P1D", 86_400, "PT24H", dt.timedelta(1), 0.5),
    SecretStr: ("a", "b", "", "**********", SecretStr("a")),
    SecretBytes: ("YQ==", b"a", b"b", SecretBytes(b"a")),
    Number: (1, 2, "1", Number.ONE),
    Mixed: (1, "1", Mixed.TEXT, b"1", (1, 2), [1, 2]),
}


class Types:
    """Makes types; the same ones for the same seed."""

    def __init__(self, seed: int) -> None:
        self._chance = random.Random(seed)

    def make(self, depth: int = 3) -> Any:
        """A type, of at most that many levels."""
        chance = self._chance
        if depth == 0 or chance.random() < 0.3:
            return chance.choice(LEAVES)
        inner, other = self.make(depth - 1), self.make(depth - 1)
        keys = chance.choice((str, int, float, bool, Any, int | str, Decimal, bytes, dt.date, Literal[1, "1"]))
        match chance.randrange(9):
            case 0:
                return list[inner]
            case 1:
                return dict[keys, inner]  # type: ignore[valid-type]
            case 2:
                return tuple[inner, other]
            case 3:
                return tuple[inner, ...]
            case 4:
                return set[keys]  # type: ignore[valid-type]
            case 5 | 6:
                return inner | other if _joins(inner) and _joins(other) else inner
            case 7:
                return dataclasses.make_dataclass("Data", [("a", inner), ("b", other, None)])
            case _:
                extra = chance.choice(("allow", "ignore", "forbid"))
                config = ConfigDict(extra=extra, frozen=chance.random() < 0.5)
                return create_model("Model", __config__=config, a=(inner, ...), b=(other, 1))

    def value(self, depth: int = 3) -> Any:
        """A value that fits some of the types: JSON values, and values that only a program or the host can give."""
        chance = self._chance
        if depth == 0 or chance.random() < 0.35:
            return chance.choice(SCALARS)
        items = [self.value(depth - 1) for _ in range(chance.randrange(3))]
        match chance.randrange(8):
            case 0:
                return items
            case 1:
                return tuple(items)
            case 2:
                return {item for item in items if _is_hashable(item)}
            case 3:
                return {chance.choice((1, "1", True, "a", 1.0, b"1", "$t")): item for item in items}
            case _:
                names = chance.choice((("a",), ("a", "b"), ("b",), ("c", "a"), ("c",), ("a", "b", "c")))
                return {name: self.value(depth - 1) for name in names}

    def fitting(self, kind: Any, depth: int = 4) -> Any:
        """A value that has the shape of the type."""
        chance, parts = self._chance, get_args(kind)
        if depth == 0 or chance.random() < 0.1:
            return self.value(1)
        origin = get_origin(kind) or kind
        if origin is Annotated or origin is Literal:
            return chance.choice(SCALARS) if origin is Annotated else chance.choice(parts)
        if origin in (Union, UnionType):
            return self.fitting(chance.choice(parts), depth)
        if origin in (list, set, Sequence) or (origin is tuple and parts[1:] == (...,)):
            return [self.fitting(parts[0] if parts else Any, depth - 1) for _ in range(chance.randrange(1, 4))]
        if origin is tuple and parts:
            return [self.fitting(part, depth - 1) for part in parts]
        if origin in (dict, Mapping) and parts:
            keys = [self.fitting(parts[0], 1) for _ in range(chance.randrange(1, 4))]
            return {key: self.fitting(parts[1], depth - 1) for key in keys if _is_hashable(key)}
        fields = _fields(origin)
        if fields:
            names = [name for name in fields if chance.random() < 0.9]
            return {name: self.fitting(fields[name], depth - 1) for name in names} | self._more(depth)
        return chance.choice(FITTING.get(origin, SCALARS))

    def _more(self, depth: int) -> dict[str, Any]:
        return {self._chance.choice("abc"): self.value(depth - 1)} if self._chance.random() < 0.2 else {}

    def near(self, value: Any) -> Any:
        """The value with one thing in it that is different, and may be written the same."""
        chance = self._chance
        if isinstance(value, dict) and value and chance.random() < 0.8:
            held = cast("dict[Any, Any]", value)
            name = chance.choice(list(held))
            return {**held, name: self.near(held[name])}
        if isinstance(value, list | tuple) and value and chance.random() < 0.8:
            items = list(cast("list[Any]", value))
            place = chance.randrange(len(items))
            items[place] = self.near(items[place])
            return items if chance.random() < 0.7 else tuple(items)
        return chance.choice(SCALARS)


def _fields(kind: Any) -> dict[str, Any]:
    if dataclasses.is_dataclass(kind):
        return {"a": Any, "b": Any} if kind is Lost else {item.name: item.type for item in dataclasses.fields(kind)}
    if kind in (Private, Open, Alike):
        return {"a": int | str, "b": Any, "c": Any}
    return {name: field.annotation for name, field in getattr(kind, "model_fields", {}).items() if name != "root"}


def _joins(kind: Any) -> bool:
    return kind is not None


def _is_hashable(value: Any) -> bool:
    try:
        hash(value)
    except TypeError:
        return False
    return True

"""The right form of a call that failed. A model reads it below the error. It never runs.

The arguments that were right stay. A `Blank` stands where a value is missing or wrong. A form holds the model's own
values, names of parameters and types, and gives no other value away.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, cast, runtime_checkable

from toolwire.definition.arguments.tagged_unions import union_at
from toolwire.definition.derived import input_schema_of, schema_with_root_fields
from toolwire.definition.json_schema.accepted_types import JSON_TYPES, types_accepted_by
from toolwire.definition.shape import ProblemKind
from toolwire.definition.tool import Tool
from toolwire.definition.words import flatten_schema, path_text
from toolwire.protocols.base import Refusal
from toolwire.protocols.reading.repair import decode_json_texts
from toolwire.protocols.reading.strict_json import load_json

KEPT_LIMIT = 400
"""Maximum number of characters of a value that is kept, as JSON. A longer one becomes a `Blank`: the model has it in
its own call, and the error must not be as long as the call.
"""

WRAPPERS_LIMIT = 4
"""Maximum number of objects, one in the other, that are taken off the arguments. Models write one or two."""

_BLANK = re.compile(r'"(?:[^"\\]|\\.)*+"?+|<(\w{1,16}(?: or \w{1,16})*+)>', re.DOTALL)
"""Matches a JSON string, or a blank outside of strings."""

_WORDS = ("string", "integer", "number", "boolean", "array", "object")


@dataclass(frozen=True, slots=True)
class Blank:
    """The place of a value that the model has to write. Its text is `<integer>`, or `<string or number>`."""

    word: str
    """The JSON types that fit, or `value` if all do."""

    def __str__(self) -> str:
        return f"<{self.word}>"


@dataclass(frozen=True, slots=True)
class Expression:
    """An argument in a program whose value only the program knows. Its text is the source, such as `rows[0]`."""

    source: str

    def __str__(self) -> str:
        return self.source


@dataclass(frozen=True, slots=True, kw_only=True)
class RightCall:
    """A call in its right form."""

    tool: Tool
    """The tool as the caller sees it."""
    arguments: Mapping[str, Any]
    """Values, `Blank` and `Expression` by parameter name, in the order of the parameters. They may be nested."""

    @classmethod
    def of(
        cls, tool: Tool, given: Mapping[str, Any], *, wrong: Collection[str] = (), kept_limit: int = KEPT_LIMIT
    ) -> RightCall | None:
        """Returns the right form of a call of this tool with these arguments. None if it cannot be told.

        `wrong` names the arguments whose values were wrong, for those that are an `Expression` here. A value of more
        than `kept_limit` characters becomes a `Blank`.
        """
        try:
            arguments = _CallRepair(tool, wrong, kept_limit).mend(given)
        except (TypeError, ValueError, RecursionError):
            # JSON cannot hold a value, such as an object in a call that the host made.
            return None
        return None if arguments is None else cls(tool=tool, arguments=arguments)


@runtime_checkable
class WritesRightForms(Protocol):
    """A protocol that writes right forms: each of toolwire's own. For another one, errors have none."""

    def right_form(self, calls: Sequence[RightCall], /) -> str:
        """Returns the calls as its model would write them."""
        ...


def json_form(value: Any) -> str:
    """Returns a value with blanks in it as JSON, in which a blank is not a JSON value: a copy of it is never read.

    Raises:
        TypeError, ValueError: JSON cannot hold a value.
    """
    if isinstance(value, Blank):
        return str(value)
    if isinstance(value, dict):
        members = cast("dict[str, Any]", value).items()
        return "{" + ", ".join(f"{json_form(name)}: {json_form(item)}" for name, item in members) + "}"
    if isinstance(value, list):
        return f"[{', '.join(map(json_form, cast('list[Any]', value)))}]"
    return json.dumps(value, ensure_ascii=False, allow_nan=False)


def load_with_blanks(text: str) -> Any:
    """Parses a JSON text into which a model copied blanks of a form. Each is a `Blank` in the value.

    For the making of a form alone: a call with a blank never runs.

    Raises:
        JSONDecodeError, Refusal: As `load_json`.
    """
    marked = _BLANK.sub(lambda found: f'"\\u0000{found[1]}"' if found[1] else found[0], text)
    return load_json(text) if marked == text else _with_blanks(load_json(marked))


def has_blank(value: Any) -> bool:
    """True if a `Blank` is in the value."""
    if isinstance(value, dict):
        return any(map(has_blank, cast("dict[str, Any]", value).values()))
    return any(map(has_blank, cast("list[Any]", value))) if isinstance(value, list) else isinstance(value, Blank)


def _with_blanks(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _with_blanks(item) for name, item in cast("dict[str, Any]", value).items()}
    if isinstance(value, list):
        return [_with_blanks(item) for item in cast("list[Any]", value)]
    return Blank(value[1:]) if isinstance(value, str) and value.startswith("\0") else value


class _CallRepair:
    """The work on one call. Its problems are found here, because arguments inside a wrapper were never checked."""

    def __init__(self, tool: Tool, wrong: Collection[str], kept_limit: int) -> None:
        self._tool = tool
        self._kept_limit = kept_limit
        self._wrong = wrong
        self._root = input_schema_of(tool)
        self._fields = {parameter.name: parameter for parameter in tool.visible_parameters}

    def mend(self, given: Mapping[str, Any]) -> dict[str, Any] | None:
        own = self._decode(self._take_off_wrappers(given, WRAPPERS_LIMIT))
        problems = self._problems(own)
        if problems and len(own) == 1:
            # The wrapper may have the name of a parameter: `{"query": {"query": "x", "limit": 5}}`.
            ((name, value),) = own.items()
            inner = _as_object(value)
            if name in problems and inner and inner.keys() & self._fields.keys():
                own = self._decode({name: item for name, item in inner.items() if name in self._fields})
                problems = self._problems(own)
        return None if problems is None else self._fill_blanks(own, problems)

    def _take_off_wrappers(self, given: Mapping[str, Any], levels: int) -> dict[str, Any]:
        """Returns the arguments that are parameters, with those inside the one unknown argument that holds any."""
        own = {name: value for name, value in given.items() if name in self._fields}
        others = [_as_object(value) for name, value in given.items() if name not in own] if levels else []
        inner = [found for other in others if other and (found := self._take_off_wrappers(other, levels - 1))]
        return {**inner[0], **own} if len(inner) == 1 else own

    def _decode(self, given: Mapping[str, Any]) -> Mapping[str, Any]:
        return decode_json_texts(given, schema_with_root_fields(self._tool))[0]

    def _problems(self, own: Mapping[str, Any]) -> dict[str, ProblemKind] | None:
        """Returns the kind of each problem by its place. None if the call as a whole is wrong or cannot be checked."""
        known = {name: value for name, value in own.items() if not isinstance(value, Expression | Blank)}
        blanks = {name for name, value in own.items() if isinstance(value, Blank)}
        wrong = _kinds(
            (name for name in own if name in blanks or (name not in known and name in self._wrong)), "invalid"
        )
        try:
            invalid = self._tool.find_problems(known)
        except Exception:  # noqa: BLE001 - validators of types are the tool author's code, and may raise anything
            return None
        if invalid is None:
            return wrong
        if invalid.more or invalid.is_partial:
            required = [name for name, parameter in self._fields.items() if parameter.required and name not in own]
            return {**wrong, **_kinds(known, "invalid"), **_kinds(required, "missing")}
        if not all(problem.path for problem in invalid.problems):
            return None
        # The value of an expression or a blank is not here, so that it counts as missing.
        for problem in invalid.problems:
            if problem.path in known or problem.path not in own:
                wrong[problem.path] = problem.kind
        return wrong

    def _fill_blanks(self, own: Mapping[str, Any], problems: Mapping[str, ProblemKind]) -> dict[str, Any] | None:
        places = _ProblemPlaces(problems, self._root)
        filled: dict[str, Any] = {}
        for name, parameter in self._fields.items():
            if name in own:
                value = places.fill(own[name], parameter.schema, (name,), is_required=parameter.required)
            else:
                value = places.missing_value(parameter.schema, (name,))
            if value is not _LEFT_OUT:
                filled[name] = value
        for path in places.unmet_problems():
            holder = next((name for name in filled if _is_below(path, name)), None)
            if holder is None:
                return None
            filled[holder] = places.blank(self._fields[holder].schema)
        return {
            name: places.blank(self._fields[name].schema) if _length(value) > self._kept_limit else value
            for name, value in filled.items()
        }


class _ProblemPlaces:
    """Puts blanks where the problems are, and notes which problems it has met."""

    def __init__(self, problems: Mapping[str, ProblemKind], root: Mapping[str, Any]) -> None:
        self._problems = problems
        self._root = root
        self._met: set[str] = set()

    def unmet_problems(self) -> list[str]:
        """Returns the places of the problems that were not met, such as those in a path that is cut."""
        return [path for path in self._problems if path not in self._met]

    def blank(self, schema: Any) -> Blank:
        """Returns the blank for a value of this schema. Constants and defaults are not named, only their types."""
        kinds = types_accepted_by(schema, self._root)
        words = [word for word in _WORDS if word in kinds and not (word == "integer" and "number" in kinds)]
        return Blank("value" if kinds == JSON_TYPES or not words else " or ".join(words))

    def missing_value(self, schema: Any, place: tuple[str | int, ...]) -> Any:
        """Returns the blank for a value that was not given; `_LEFT_OUT` if it need not be."""
        path = path_text(place)
        if self._problems.get(path) != "missing":
            return _LEFT_OUT
        self._met.add(path)
        return self.blank(schema)

    def fill(self, value: Any, schema: Any, place: tuple[str | int, ...], *, is_required: bool) -> Any:
        """Returns the value with blanks; `_LEFT_OUT` for one that does not belong there."""
        path = path_text(place)
        if kind := self._problems.get(path):
            self._met.add(path)
            # A model writes null for "nothing".
            is_nothing = kind == "unexpected" or (value is None and not is_required)
            return _LEFT_OUT if is_nothing else self.blank(schema)
        below = [other for other in self._problems if _is_below(other, path)]
        if not below:
            return value
        union, options = union_at(schema, self._root)
        if len(options) > 1:
            # A right value may be of another option, with other fields.
            self._met.update(below)
            return self.blank(union)
        node = flatten_schema(options[0] if options else union, self._root)
        if isinstance(value, dict):
            return self._object(cast("dict[str, Any]", value), node, place)
        if isinstance(value, list):
            items = [
                self.fill(item, _item_schema(node, at), (*place, at), is_required=True)
                for at, item in enumerate(cast("list[Any]", value))
            ]
            return [item for item in items if item is not _LEFT_OUT]
        return value

    def _object(
        self, value: Mapping[str, Any], node: Mapping[str, Any], place: tuple[str | int, ...]
    ) -> dict[str, Any]:
        inner = cast("Mapping[str, Any]", node.get("properties") or {})
        required = cast("list[str]", node.get("required") or [])
        filled = {
            name: self.fill(
                item, inner.get(name, node.get("additionalProperties")), (*place, name), is_required=name in required
            )
            for name, item in value.items()
        }
        filled |= {
            name: self.missing_value(schema, (*place, name)) for name, schema in inner.items() if name not in value
        }
        return {name: item for name, item in filled.items() if item is not _LEFT_OUT}


_LEFT_OUT = object()
"""Stands for a value that the right form does not have."""


def _kinds(names: Iterable[str], kind: ProblemKind) -> dict[str, ProblemKind]:
    return dict.fromkeys(names, kind)


def _is_below(path: str, holder: str) -> bool:
    return path.startswith((f"{holder}.", f"{holder}["))


def _item_schema(node: Mapping[str, Any], place: int) -> Any:
    listed = cast("list[Any]", node.get("prefixItems") or [])
    return listed[place] if place < len(listed) else node.get("items")


def _as_object(value: Any) -> Mapping[str, Any] | None:
    """Returns an object, also one that is written as JSON text. None for any other value."""
    if isinstance(value, str) and value.lstrip().startswith("{"):
        try:
            value = load_json(value)
        except (ValueError, Refusal):
            return None
    return cast("Mapping[str, Any]", value) if isinstance(value, dict) else None


def _length(value: Any) -> int:
    return len(str(value) if isinstance(value, Expression) else json_form(value))

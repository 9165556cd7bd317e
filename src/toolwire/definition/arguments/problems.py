"""Conversion of pydantic's errors to problems that a model can fix."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, NamedTuple, TypedDict, cast

from toolwire.definition.arguments.proposals import PROPOSAL_LIMIT_BYTES, proposals_for
from toolwire.definition.arguments.tagged_unions import tags_of, union_at
from toolwire.definition.shape import ArgumentProblem, Invalid
from toolwire.definition.words import describe_one_value, nearest_hint, path_text, resolve, short_repr
from toolwire.vocabulary.texts.cuts import fit_text


class GivenError(TypedDict):
    """The fields of pydantic's errors that are used here."""

    type: str
    loc: tuple[str | int, ...]
    msg: str
    input: Any


TOO_LARGE = "too_large_to_check"
"""Type of an error about the size of all arguments together."""

COMPLAINT_PROBLEMS_LIMIT = 10
"""Maximum number of problems in one complaint. The model fixes these, and the next call reports the rest."""

COMPLAINT_LIMIT_BYTES = 4_000
"""Maximum size of a complaint in bytes, with its heading and hint, about a thousand tokens."""

READ_LIMIT = 1_000
"""Maximum number of problems that are read. A complaint shows ten, and a checker can find 300,000."""

_PROBLEMS_LIMIT_BYTES = 2_800
"""Maximum size in bytes of the problems in a complaint."""

_PROBLEM_LIMIT_BYTES = 1_000
"""Maximum size of one problem in bytes."""

_PATH_LIMIT_BYTES = 200


class LazyProblem(NamedTuple):
    """A problem that was found: its place, and a function that describes it."""

    path: str
    problem: Callable[[], ArgumentProblem]


def complaint(found: Iterable[LazyProblem], *, more: int = 0, is_partial: bool = False) -> Invalid | None:
    """Returns the problems, one for each place and bounded, or None without problems.

    At most `READ_LIMIT` of `found` are read. `more` counts further known problems. `is_partial` means that the check
    ended early.
    """
    kept: list[ArgumentProblem] = []
    seen: set[str] = set()
    size = count = 0
    for number, (path, problem) in enumerate(found):
        if number == READ_LIMIT:
            is_partial = True
            break
        # The call as a whole has the empty path, and may have several problems.
        if path in seen and path:
            continue
        seen.add(path)
        count += 1
        if len(kept) == count - 1 and len(kept) < COMPLAINT_PROBLEMS_LIMIT:
            cut = _cut_problem(problem())
            size += len(cut.message.encode("utf-8", "replace")) + (PROPOSAL_LIMIT_BYTES if cut.proposals else 0)
            if size <= _PROBLEMS_LIMIT_BYTES:
                kept.append(cut)
    return Invalid(problems=tuple(kept), more=count - len(kept) + more, is_partial=is_partial) if kept else None


def as_lazy_problem(problem: ArgumentProblem) -> LazyProblem:
    """Wraps an existing problem."""
    return LazyProblem(problem.path, lambda: problem)


def _cut_problem(problem: ArgumentProblem) -> ArgumentProblem:
    message = fit_text(problem.message, _PROBLEM_LIMIT_BYTES)
    path = fit_text(problem.path, _PATH_LIMIT_BYTES)
    if message is problem.message and path is problem.path:
        return problem
    return replace(problem, path=path, message=message if message is problem.message else f"{message}...")


def problems_of(
    errors: Iterable[GivenError], arguments: Mapping[str, Any], schema: dict[str, Any], not_given: AbstractSet[str]
) -> Iterator[LazyProblem]:
    """Yields one problem for each wrong place, in pydantic's order.

    `not_given` are the parameters that the host gives. A union has an error for each of its types; they become one
    problem. If the value's JSON type fits only one of the types, that type's errors are used.
    """
    skipped: GivenError | None = None
    is_placed = False
    for error in errors:
        if error["type"] == TOO_LARGE:
            is_placed = True
            yield as_lazy_problem(ArgumentProblem(path="", kind="invalid", message=error["msg"]))
            continue
        place = _locate_error(error["loc"], arguments, schema)
        if place is None:
            skipped = skipped or error
            continue
        is_placed = True
        yield LazyProblem(path_text(place.path), partial(_problem, error, place, arguments, schema, not_given))
    if not is_placed and skipped is not None:
        path = path_text(skipped["loc"])
        yield as_lazy_problem(
            ArgumentProblem(path=path, kind="invalid", message=f"{path!r} is wrong: {skipped['msg']}.")
        )


def missing_problem(path: str, wanted: str) -> ArgumentProblem:
    """Reports that a required argument is missing."""
    return ArgumentProblem(path=path, kind="missing", message=f"{path!r} is missing: give {wanted}.")


def hidden_problem(path: str) -> ArgumentProblem:
    """Reports an argument that only the host may give."""
    message = f"{path!r} is set by the host and not yours to give: remove it."
    return ArgumentProblem(path=path, kind="hidden", message=message)


def unknown_problem(path: str, name: str, names: Iterable[str]) -> ArgumentProblem:
    """Reports an unknown argument, with the nearest known name."""
    message = f"{path!r} is unknown: {nearest_hint(name, names).removesuffix('?')}"
    return ArgumentProblem(path=path, kind="unexpected", message=f"{message}?" if "mean" in message else f"{message}.")


def invalid_problem(
    place: Sequence[str | int], wanted: str, given: Any, detail: str = "", *, whole: str = ""
) -> ArgumentProblem:
    """Reports a value that does not fit. `detail` gives a reason that the expected type does not imply.

    `whole` names the value if the place is empty.
    """
    path = path_text(place) or whole
    proposals: tuple[Any, ...] = ()
    if isinstance(given, list) and given and not detail and "array" not in wanted and path.isidentifier():
        wanted, detail = _one_of_list(wanted, len(cast("list[Any]", given)))
    elif isinstance(given, str) and not detail:
        proposals = tuple(proposals_for(given, wanted))
    reason = f": {detail}" if detail else ""
    if short_repr(given) in wanted.removeprefix("one of ").split(", "):
        # A value that is listed and refused all the same, or two long texts that look alike when they are cut.
        message = f"{path!r} cannot be {short_repr(given)}{reason or ': copy one of the listed values whole'}."
    else:
        message = f"{path!r} must be {wanted}, not {short_repr(given)}{reason}."
    return ArgumentProblem(path=path, kind="invalid", message=message, place=tuple(place), proposals=proposals)


def _one_of_list(wanted: str, count: int) -> tuple[str, str]:
    """Returns the wanted value and the advice for a model that gave a list where one value belongs."""
    article, _, kind = wanted.partition(" ")
    one = f"one {kind}" if article in ("a", "an") and " or " not in kind else wanted
    return one, "give it without the list" if count == 1 else f"call it once for each of the {count}"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Place:
    path: tuple[str | int, ...]
    node: dict[str, Any]
    """The schema at this place."""
    holder: dict[str, Any]
    """The schema one step above."""
    is_tag: bool = False
    """True for a field that tells the objects of a union apart, and has none of its values."""


_MISSING = frozenset(
    {"missing", "missing_argument", "missing_keyword_only_argument", "missing_positional_only_argument"}
)
_UNEXPECTED = frozenset({"extra_forbidden", "unexpected_keyword_argument", "invalid_key"})
_SAID_BY_THE_SCHEMA = frozenset(
    {
        *("greater_than", "greater_than_equal", "less_than", "less_than_equal", "multiple_of"),
        *("string_too_short", "string_too_long", "too_short", "too_long", "string_pattern_mismatch"),
        *("enum", "literal_error", "int_from_float", "needs_python_object", "union_tag_invalid"),
    }
)


def _problem(
    error: GivenError,
    place: _Place,
    arguments: Mapping[str, Any],
    schema: dict[str, Any],
    not_given: AbstractSet[str],
) -> ArgumentProblem:
    path = path_text(place.path)
    if place.is_tag:
        holder = _value_at(place.path[:-1], arguments, {})
        if place.path[-1] not in holder:
            return missing_problem(path, describe_one_value(place.node, schema))
        return invalid_problem(place.path, describe_one_value(place.node, schema), holder[place.path[-1]])
    if error["type"] in _MISSING:
        return missing_problem(path, describe_one_value(place.node, schema))
    if error["type"] in _UNEXPECTED and place.path:
        name = str(place.path[-1])
        if len(place.path) == 1 and name in not_given:
            return hidden_problem(path)
        return unknown_problem(path, name, cast("dict[str, Any]", place.holder.get("properties", {})))
    if error["loc"][-1:] == ("[key]",):
        message = f"{path!r} has a key that does not fit: {_lower_first_letter(error['msg'])}."
        return ArgumentProblem(path=path, kind="invalid", message=message)
    given = _value_at(place.path, arguments, error["input"])
    wanted = describe_one_value(place.node, schema)
    return invalid_problem(place.path, wanted, given, _detail(error, is_of_type=_is_of_type(given, wanted)))


_WORDS: Mapping[type, tuple[str, ...]] = {
    str: ("a string",),
    int: ("an integer", "a number"),
    float: ("a number",),
    list: ("an array",),
    dict: ("an object",),
}


def _is_of_type(given: Any, wanted: str) -> bool:
    """True if the value is what these words say, as any text is "a string". They do not say then what is wrong."""
    words = _WORDS.get(cast("Any", type(given)), ())
    return any(option in words for option in wanted.split(" or "))


def _detail(error: GivenError, *, is_of_type: bool) -> str:
    kind = error["type"]
    is_said = kind in _SAID_BY_THE_SCHEMA or kind.endswith(("_type", "_parsing", "_parsing_size"))
    if is_said and not is_of_type:
        return ""
    text = error["msg"]
    for prefix in ("Value error, ", "Assertion failed, "):
        text = text.removeprefix(prefix)
    return _lower_first_letter(text.rstrip("."))


def _lower_first_letter(text: str) -> str:
    return text[:1].lower() + text[1:] if text.startswith("Input ") else text


def _locate_error(loc: Sequence[str | int], arguments: Mapping[str, Any], schema: dict[str, Any]) -> _Place | None:
    """Locates an error in arguments and schema. None for an error of a union type that the value does not have.

    A `loc` contains union members and validators between keys and indexes. They are not part of the path.
    """
    path: tuple[str | int, ...] = ()
    node = holder = schema
    for step in loc:
        if step == "[key]":
            break
        union, options = union_at(node, schema)
        if len(options) > 1:
            if (tag := _wrong_tag(path, union, arguments, schema)) is not None:
                return tag
            option = _find_meant_option(options, step, union, _value_at(path, arguments, None), schema)
            if option is None:
                break
            if not option:
                return None
            node = option
            continue
        inner = options[0] if options else resolve(node, schema)
        below = _schema_below(inner, step)
        if below is None:
            break
        path, node, holder = (*path, step), below, inner
    tag = _wrong_tag(path, union_at(node, schema)[0], arguments, schema)
    return tag or _Place(path=path, node=node, holder=holder)


def _wrong_tag(
    path: tuple[str | int, ...], union: dict[str, Any], arguments: Mapping[str, Any], schema: dict[str, Any]
) -> _Place | None:
    """Returns the place of the field that tells the objects of the union apart, if it is what is wrong."""
    tags, value = tags_of(union, schema), _value_at(path, arguments, None)
    if tags is None or not isinstance(value, Mapping):
        return None
    given = cast("Mapping[str, Any]", value)
    if tags.option_for(given) is not None:
        return None
    return _Place(path=(*path, tags.name), node=tags.node, holder=union, is_tag=True)


def _find_meant_option(
    options: list[dict[str, Any]], step: str | int, union: dict[str, Any], value: Any, root: dict[str, Any]
) -> dict[str, Any] | None:
    """Returns the union type that the value is meant to have.

    None if this is open, `{}` if the error is of another type.
    """
    tags = tags_of(union, root)
    if tags is not None and isinstance(value, Mapping):
        option = tags.option_for(cast("Mapping[str, Any]", value))
        return option if option is None or step in tags.options or _is_label(str(step), "object", option, root) else {}
    kind = "object" if isinstance(value, Mapping) else "array" if isinstance(value, list | tuple) else ""
    fitting = [option for option in options if kind and option.get("type") == kind]
    if len(fitting) != 1:
        return None
    return fitting[0] if _is_label(str(step), kind, fitting[0], root) else {}


def _is_label(step: str, kind: str, option: dict[str, Any], root: dict[str, Any]) -> bool:
    if kind == "array":
        return step.startswith(("list", "tuple", "set", "frozenset", "deque"))
    defined = root.get("$defs", {}).get(step)
    return defined == option if defined is not None else step.startswith("dict")


def _schema_below(node: dict[str, Any], step: str | int) -> dict[str, Any] | None:
    kind = node.get("type")
    if kind == "array" and isinstance(step, int):
        listed = node.get("prefixItems", ())
        return _schema(listed[step] if step < len(listed) else node.get("items", {}))
    if kind == "object":
        return _schema(node.get("properties", {}).get(step, node.get("additionalProperties", {})))
    return None


def _schema(found: Any) -> dict[str, Any]:
    return cast("dict[str, Any]", found) if isinstance(found, dict) else {}


def _value_at(path: Sequence[str | int], arguments: Mapping[str, Any], otherwise: Any) -> Any:
    value: Any = arguments
    for step in path:
        try:
            value = value[step]
        except (KeyError, IndexError, TypeError):
            return otherwise
    return value

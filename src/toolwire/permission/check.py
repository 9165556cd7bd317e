"""Checks rules against the registered tools, and reports rules that can never have an effect."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any, Protocol, cast

from toolwire.definition.derived import input_schema_of
from toolwire.definition.tool import Invalid, Permission, Tool, arguments_with_types, canonical
from toolwire.definition.words import flatten_schema, limit_references
from toolwire.permission.condition import MISSING, Condition, value_at
from toolwire.permission.rule import Rule
from toolwire.permission.typed_values import ORDERED, TYPED, Kind, kind_of, kinds_compared, readings, value_for_order
from toolwire.vocabulary.calls import ACTIVATE_TOOL_GROUPS, CODE_EXECUTION, SEARCH_TOOLS
from toolwire.vocabulary.errors import BoundValueError, Unrepresentable

_OFFERED_LATER = (ACTIVATE_TOOL_GROUPS, CODE_EXECUTION, SEARCH_TOOLS)
"""Tools that sessions add themselves."""
_INNER_DEPTH = 5
"""Maximum levels of tools below each other, as for calls: `context.using` refuses more."""

Path = tuple[str, ...]
"""The names from a tool to one below it, such as `("payer", "pay")` of a sub-agent. An own tool has one name."""


class Described(Protocol):
    """An object with a tool: the tool itself, or a `ToolSpec`."""

    def __tool__(self) -> Tool: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class RuleProblem:
    """A problem with a rule or with a permission by tool name.

    Attributes:
        rule: The rule; None for a permission.
        place: The source of the rule.
        message: A description of the problem, with a correction.
        is_undecidable: True if a condition can decide on no value of its parameter's type. Such a deny or confirm rule
            holds back every call, and such an auto rule lets none run.
    """

    rule: Rule | None
    place: str
    message: str
    is_undecidable: bool = False

    def __str__(self) -> str:
        return f"{self.place}: {self.message}"


def problems(
    rules: Iterable[Rule],
    tools: Mapping[str, Described],
    *,
    now: float,
    is_whole: bool,
    defaults: Mapping[str, Permission],
) -> list[RuleProblem]:
    """Returns the problems of the rules for the given tools; see `Policy.check`."""
    seen: dict[str, str] = {}
    told: list[RuleProblem] = []
    known = tools_by_path({name: tool.__tool__() for name, tool in tools.items()})
    names = dict.fromkeys(path[-1] for path in known)
    for number, rule in enumerate(rules, 1):
        place = rule.source or f"rule {number}"
        if not is_whole and rule.tool not in names:
            continue
        messages = list(_problems(rule, known, now, defaults))
        if rule.id and rule.id in seen:
            messages.append(f"{seen[rule.id]} has the id {rule.id!r} too: give each its own")
        seen.setdefault(rule.id, place)
        told += [
            RuleProblem(rule=rule, place=place, message=message, is_undecidable=isinstance(message, _Undecidable))
            for message in messages
        ]
    unknown = [name for name in defaults if is_whole and name not in names and name != CODE_EXECUTION]
    return told + [
        RuleProblem(rule=None, place="permissions", message=_unknown_tool_text(name, names)) for name in unknown
    ]


def tools_by_path(tools: Mapping[str, Tool]) -> dict[Path, Tool]:
    """Returns the tools and all tools below them, each level before the next. A circle of tools is followed once."""
    level: dict[Path, Tool] = {(name,): tool for name, tool in tools.items()}
    found, followed = dict(level), set[Callable[[], Mapping[str, Tool]]]()
    for _ in range(_INNER_DEPTH):
        # Tools that share this function have the same tools below them, such as a tool and its copy of another name.
        holders = {path: tool for path, tool in level.items() if tool.inner_tools not in followed}
        followed |= {tool.inner_tools for tool in holders.values()}
        level = {(*path, name): inner for path, tool in holders.items() for name, inner in tool.inner_tools().items()}
        found |= level
    return found


class _Undecidable(str):
    """A message about a condition that can decide on no value."""

    __slots__ = ()


def _problems(rule: Rule, tools: Mapping[Path, Tool], now: float, defaults: Mapping[str, Permission]) -> Iterable[str]:
    if rule.ends_at is not None and rule.ends_at <= now:
        yield "it has expired: take it out, or set another expires_at"
    fitting = {path: tool for path, tool in tools.items() if rule.fits(path[-1])}
    if not fitting:
        if not rule.optional and rule.tool not in _OFFERED_LATER:
            yield _no_tool(rule, [path[-1] for path in tools])
        return
    if rule.effect == "auto" and all(defaults.get(at[-1], tool.permission) == "deny" for at, tool in fitting.items()):
        yield f"an auto rule never lifts deny: change the permission of {_tool_paths_text(fitting)} itself"
    wrong = list(_wrong_conditions(rule, fitting))
    yield from wrong
    if not wrong:
        yield from _wrong_examples(rule, fitting)


def _no_tool(rule: Rule, tools: Iterable[str]) -> str:
    if any(sign in rule.tool for sign in "*?["):
        return f"no tool fits {rule.tool!r}: it never hits; mend the pattern, or set optional = true"
    return f"{_unknown_tool_text(rule.tool, tools)}, or set optional = true"


def _unknown_tool_text(name: str, tools: Iterable[str]) -> str:
    near = get_close_matches(name, list(tools), 1)
    instead = f"did you mean {near[0]!r}? " if near else ""
    return f"there is no tool {name!r}: {instead}mend the name"


def _tool_paths_text(paths: Iterable[Path]) -> str:
    """Returns the names of tools. One that is below another tool has both names: `'payer > pay'`."""
    return ", ".join(repr(" > ".join(path)) for path in paths)


def _wrong_conditions(rule: Rule, fitting: Mapping[Path, Tool]) -> Iterable[str]:
    by_path: dict[tuple[str, ...], list[Condition]] = {}
    for condition in rule.conditions:
        by_path.setdefault(condition.tokens, []).append(condition)
    schemas = {path: input_schema_of(tool) for path, tool in fitting.items()}
    for tokens, conditions in by_path.items():
        places = {path: _schemas_at(schema, tokens) for path, schema in schemas.items()}
        lacking = [path for path, found_there in places.items() if not found_there]
        if len(lacking) == len(places):
            if not rule.optional:
                yield _no_parameter(conditions[0], fitting, schemas)
            continue
        if lacking and rule.effect != "auto" and not rule.optional and all(each.op != "exists" for each in conditions):
            yield (
                f"{_tool_paths_text(lacking)} have no {'.'.join(tokens)!r}, so that it would hit all their calls: "
                f"name the tools it is about, or add {{path = {conditions[0].path!r}, op = 'exists'}}"
            )
        reasons = {
            path: _why_impossible(conditions, there, is_json=not tokens or fitting[path].takes_json(tokens[0]))
            for path, there in places.items()
            if there
        }
        if all(reasons.values()) and not rule.optional:
            path, reason = next(iter(reasons.items()))
            message = f"it can never hit {_tool_paths_text([path])}: {reason}"
            are_undecidable = all(isinstance(each, _Undecidable) for each in reasons.values())
            yield _Undecidable(message) if are_undecidable else message


def _no_parameter(condition: Condition, fitting: Mapping[Path, Tool], schemas: Mapping[Path, Any]) -> str:
    names = sorted({name for schema in schemas.values() for name in schema.get("properties", {})})
    near = get_close_matches(condition.tokens[0], names, 1) if len(condition.tokens) == 1 else []
    there = f"did you mean '/arguments/{near[0]}'?" if near else f"there are {', '.join(names) or 'none'}"
    return f"no tool that it is about ({_tool_paths_text(fitting)}) takes {condition.path!r}; {there}"


def _wrong_examples(rule: Rule, fitting: Mapping[Path, Tool]) -> Iterable[str]:
    by_name: dict[str, list[Tool]] = {}
    for path, tool in fitting.items():
        by_name.setdefault(path[-1], []).append(tool)
    for must_hit, call in rule.calls:
        word = "match" if must_hit else "not_match"
        name = call.get("tool", rule.tool)
        if name not in by_name:
            if must_hit or "tool" not in call:
                yield f"{word} {dict(call)!r}: add tool = one of {', '.join(map(repr, by_name))}"
            continue
        # An agent and its sub-agents may each have a tool of this name: the example is a call of one of them.
        read = [_arguments(tool, call["arguments"]) for tool in by_name[name]]
        arguments = next((each for each in read if not isinstance(each, str)), read[0])
        if isinstance(arguments, str):
            yield f"{word} {dict(call)!r} is not a call of {name!r}: {arguments}"
        elif rule.holds(*arguments) is not must_hit:
            yield f"{word} {dict(call)!r}: the rule {_describe_match(rule, *arguments)}"


def _arguments(tool: Tool, given: Mapping[str, Any]) -> tuple[Mapping[str, Any], Mapping[str, Any] | None] | str:
    """Returns the arguments as they would run, also typed, or a text that says why they would not."""
    try:
        validated = tool.validate(given)
        if isinstance(validated, Invalid):
            wrong = [problem.message for problem in validated.problems if problem.kind != "no_state"]
            return "; ".join(wrong) if wrong else (given, None)
        return canonical(validated), arguments_with_types(validated)
    except BoundValueError:
        # The call raises it to the host. The arguments of the model are right.
        return given, None
    except Unrepresentable as error:
        return str(error)
    except Exception as error:  # noqa: BLE001 - validators and checks of a tool are its author's code
        return f"{type(error).__name__}: {error}"


def _describe_match(rule: Rule, arguments: Mapping[str, Any], typed: Mapping[str, Any] | None) -> str:
    if rule.holds(arguments, typed):
        return "hits it"
    missed = next(each for each in rule.conditions if each.holds(arguments, typed) is not True)
    return f"does not hit it: {describe_result(missed, arguments, typed)}"


def describe_result(condition: Condition, arguments: Mapping[str, Any], typed: Mapping[str, Any] | None = None) -> str:
    """Describes the result of a condition for these arguments. `typed` is as in `Subject`."""
    value = value_at(arguments, condition.tokens)
    answer = condition.holds(arguments, typed)
    words = {True: "holds", False: "does not hold", None: "cannot be told"}[answer]
    if answer is not None:
        return f"{condition} {words}"
    if value is MISSING:
        return f"{condition} {words}: it is not there"
    return f"{condition} {words} of {value!r}"


# -- values that a schema allows --------------------------------------------------------------------------------

_CHOICES_DEPTH = 8
"""Maximum levels of choices within choices; deeper ones count as allowing any value."""

_KINDS: Mapping[str, Kind] = {
    "string": "text",
    "integer": "number",
    "number": "number",
    "boolean": "boolean",
    "null": "null",
    "array": "list",
    "object": "object",
}
_FORMATS: Mapping[str, Kind] = {
    "date": "date",
    "date-time": "datetime",
    "time": "time",
    "duration": "duration",
}
_DATES: frozenset[Kind] = frozenset(_FORMATS.values())
_WORDS: Mapping[Kind, str] = {
    "text": "a string",
    "number": "a number",
    "decimal": "a Decimal",
    "date": "a date",
    "datetime": "a date and time",
    "time": "a time",
    "duration": "a duration",
    "bytes": "bytes",
    "boolean": "true or false",
    "null": "null",
    "list": "a list",
    "object": "an object",
}
_TEXTUAL: frozenset[Kind] = frozenset[Kind]({"text"}) | TYPED
"""The kinds that a text operator looks at: JSON writes them as text."""


def _why_impossible(conditions: Sequence[Condition], schemas: Sequence[Mapping[str, Any]], *, is_json: bool) -> str:
    """Returns why no value that the schemas allow can meet one of the conditions; empty if each can be met.

    `is_json` is False if the tool turns texts into Decimals, dates and the like.
    """
    allowed = frozenset[Kind]().union(*(_value_kinds(schema, is_json=is_json) for schema in schemas))
    listed = _values(schemas)
    for condition in conditions:
        wanted = _kinds_of_condition(condition)
        if not wanted & allowed:
            allows = f"{condition.path!r} is {_kinds_text(allowed)} in its schema"
            return _Undecidable(f"{condition} looks at {_kinds_text(wanted)}, and {allows}")
        if listed is None or condition.op == "absent":
            continue
        if not any(
            condition.holds_of(meant) is True for value in listed for meant in _possible_values(value, is_json=is_json)
        ):
            return f"{condition} can never hold among {', '.join(map(repr, listed))}"
    return ""


def _possible_values(value: Any, *, is_json: bool) -> list[Any]:
    """Returns the values that a tool may get for one that its schema lists."""
    return [value, *readings(value)] if isinstance(value, str) and not is_json else [value]


def _value_kinds(schema: Mapping[str, Any], *, is_json: bool) -> frozenset[Kind]:
    """Returns the kinds of values that a rule sees where the schema allows a text, and `_kinds` elsewhere."""
    kinds: set[Kind] = set(_kinds(schema))
    listed = _enum_values(schema)
    if listed is not None:
        return frozenset(kind_of(meant) for value in listed for meant in _possible_values(value, is_json=is_json))
    if schema.get("type") != "string":
        return frozenset(kinds)
    found = _FORMATS.get(str(schema.get("format")))
    if schema.get("contentEncoding") == "base64":
        found = "bytes"
    if found is not None and (not is_json or found in _DATES):
        # Where the tool keeps the text, a text that writes a date is compared with a date.
        kinds = {found, "text"} if is_json else {found}
    elif found is None and "format" not in schema:
        kinds |= _DATES
    return frozenset[Kind](kinds)


def _kinds_of_condition(condition: Condition) -> frozenset[Kind]:
    """Returns the kinds of values that the condition can decide on."""
    match condition.op:
        case "==" | "!=":
            return kinds_compared(condition.value)
        case "<" | "<=" | ">" | ">=":
            return kinds_compared(value_for_order(condition.value)) & ORDERED
        case "in" | "not_in":
            return frozenset[Kind]().union(*map(kinds_compared, condition.value))
        case "contains":
            is_text = kind_of(condition.value) == "text"
            return frozenset[Kind]({"list"}) | (_TEXTUAL if is_text else frozenset[Kind]())
        case "starts_with" | "ends_with" | "matches" | "under" | "host_in":
            return _TEXTUAL
        case _:
            return frozenset(_WORDS)


def _kinds_text(kinds: frozenset[Kind]) -> str:
    if "text" in kinds:
        kinds -= TYPED
    elif "number" in kinds:
        kinds -= {"decimal"}
    return " or ".join(word for kind, word in _WORDS.items() if kind in kinds)


@limit_references
def _schemas_at(schema: Mapping[str, Any], tokens: Sequence[str]) -> list[dict[str, Any]]:
    """Returns the schemas, one of which a value at the path must fit; none if the schema allows no value there."""
    found = _choices(schema, schema)
    for token in tokens:
        found = [
            choice for each in found for inner in _schemas_below(each, token) for choice in _choices(inner, schema)
        ]
    return found


def _choices(schema: object, root: Mapping[str, Any], depth: int = _CHOICES_DEPTH) -> list[dict[str, Any]]:
    if schema is False:
        return []
    node = flatten_schema(schema, root)
    choices = cast("list[Any] | None", node.get("anyOf", node.get("oneOf")))
    if choices is None or depth <= 0:
        return [node]
    rest = {key: value for key, value in node.items() if key not in ("anyOf", "oneOf")}
    return [{**rest, **each} for choice in choices for each in _choices(choice, root, depth - 1)]


def _schemas_below(schema: Mapping[str, Any], token: str) -> list[object]:
    """Returns the schemas one step further down. A name outside of `properties` needs `additionalProperties`."""
    found: list[object] = []
    allowed, properties = _kinds(schema), schema.get("properties")
    if "object" in allowed:
        if properties is not None and token in properties:
            found.append(properties[token])
        elif properties is None or "additionalProperties" in schema:
            found.append(schema.get("additionalProperties", {}))
    if "list" in allowed and token.isascii() and token.isdigit():
        first = cast("Sequence[object]", schema.get("prefixItems", ()))
        found.append(first[int(token)] if int(token) < len(first) else schema.get("items", {}))
    return found


def _kinds(schema: Mapping[str, Any]) -> frozenset[Kind]:
    listed = _enum_values(schema)
    if listed is not None:
        return frozenset(kind_of(value) for value in listed)
    named: Any = schema.get("type")
    types = [named] if isinstance(named, str) else cast("list[str]", named or [])
    return frozenset(_KINDS[each] for each in types if each in _KINDS) or frozenset(_WORDS)


def _values(schemas: Sequence[Mapping[str, Any]]) -> list[Any] | None:
    """Returns all values that the schemas list; None if one of them lists none."""
    listed = [_enum_values(schema) for schema in schemas]
    return None if None in listed else [value for values in listed for value in values or ()]


def _enum_values(schema: Mapping[str, Any]) -> list[Any] | None:
    if "const" in schema or schema.get("type") == "null":
        return [schema.get("const")]
    return schema.get("enum")

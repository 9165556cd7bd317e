"""Checks rules against the registered tools, and reports rules that can never have an effect."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any, Protocol

from toolwire.definition.tool import Invalid, Permission, Tool, canonical
from toolwire.permission.condition import MISSING, Condition, found
from toolwire.permission.contradiction import contradiction, impossible
from toolwire.permission.rule import Rule
from toolwire.permission.schema import at
from toolwire.vocabulary.calls import ACTIVATE_TOOL_GROUPS, CODE_EXECUTION, SEARCH_TOOLS
from toolwire.vocabulary.errors import BoundValueError, Unrepresentable

_OFFERED_LATER = (ACTIVATE_TOOL_GROUPS, CODE_EXECUTION, SEARCH_TOOLS)
"""Tools that sessions add themselves."""


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
    """

    rule: Rule | None
    place: str
    message: str

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
    for number, rule in enumerate(rules, 1):
        place = rule.source or f"rule {number}"
        if not is_whole and rule.tool not in tools:
            continue
        messages = list(_problems(rule, {name: tools[name].__tool__() for name in tools}, now, defaults))
        if rule.id and rule.id in seen:
            messages.append(f"{seen[rule.id]} has the id {rule.id!r} too: give each its own")
        seen.setdefault(rule.id, place)
        told += [RuleProblem(rule=rule, place=place, message=message) for message in messages]
    unknown = [name for name in defaults if is_whole and name not in tools and name != CODE_EXECUTION]
    return told + [RuleProblem(rule=None, place="permissions", message=_unknown(name, tools)) for name in unknown]


def _problems(rule: Rule, tools: Mapping[str, Tool], now: float, defaults: Mapping[str, Permission]) -> Iterable[str]:
    if rule.ends_at is not None and rule.ends_at <= now:
        yield "it has expired: take it out, or set another expires_at"
    clash = contradiction(rule.conditions)
    if clash:
        yield clash
        return
    fitting = {name: tool for name, tool in tools.items() if rule.fits(name)}
    if not fitting:
        if not rule.optional and rule.tool not in _OFFERED_LATER:
            yield _no_tool(rule, tools)
        return
    if rule.effect == "auto" and all(defaults.get(name, tool.permission) == "deny" for name, tool in fitting.items()):
        yield f"an auto rule never lifts deny: change the permission of {', '.join(map(repr, fitting))} itself"
    wrong = list(_wrong_conditions(rule, fitting))
    yield from wrong
    if not wrong:
        yield from _wrong_examples(rule, fitting)


def _no_tool(rule: Rule, tools: Mapping[str, Tool]) -> str:
    if any(sign in rule.tool for sign in "*?["):
        return f"no tool fits {rule.tool!r}: it never hits; mend the pattern, or set optional = true"
    return f"{_unknown(rule.tool, tools)}, or set optional = true"


def _unknown(name: str, tools: Iterable[str]) -> str:
    near = get_close_matches(name, list(tools), 1)
    instead = f"did you mean {near[0]!r}? " if near else ""
    return f"there is no tool {name!r}: {instead}mend the name"


def _wrong_conditions(rule: Rule, fitting: Mapping[str, Tool]) -> Iterable[str]:
    by_path: dict[tuple[str, ...], list[Condition]] = {}
    for condition in rule.conditions:
        by_path.setdefault(condition.tokens, []).append(condition)
    schemas = {name: tool.input_schema for name, tool in fitting.items()}
    for tokens, conditions in by_path.items():
        places = {name: at(schema, tokens) for name, schema in schemas.items()}
        lacking = [name for name, found_there in places.items() if not found_there]
        if len(lacking) == len(places):
            if not rule.optional:
                yield _no_parameter(conditions[0], fitting, schemas)
            continue
        if lacking and rule.effect != "auto" and not rule.optional and all(each.op != "exists" for each in conditions):
            yield (
                f"{', '.join(map(repr, lacking))} have no {'.'.join(tokens)!r}, so that it would hit all their calls: "
                f"name the tools it is about, or add {{path = {conditions[0].path!r}, op = 'exists'}}"
            )
        reasons = {name: impossible(conditions, there) for name, there in places.items() if there}
        if all(reasons.values()) and not rule.optional:
            name, reason = next(iter(reasons.items()))
            yield f"it can never hit {name!r}: {reason}"


def _no_parameter(condition: Condition, fitting: Mapping[str, Tool], schemas: Mapping[str, Any]) -> str:
    names = sorted({name for schema in schemas.values() for name in schema.get("properties", {})})
    near = get_close_matches(condition.tokens[0], names, 1) if len(condition.tokens) == 1 else []
    there = f"did you mean '/arguments/{near[0]}'?" if near else f"there are {', '.join(names) or 'none'}"
    return f"no tool that it is about ({', '.join(map(repr, fitting))}) takes {condition.path!r}; {there}"


def _wrong_examples(rule: Rule, fitting: Mapping[str, Tool]) -> Iterable[str]:
    for must_hit, call in rule.calls:
        word = "match" if must_hit else "not_match"
        name = call.get("tool", rule.tool)
        if name not in fitting:
            if must_hit or "tool" not in call:
                yield f"{word} {dict(call)!r}: add tool = one of {', '.join(map(repr, fitting))}"
            continue
        arguments = _arguments(fitting[name], call["arguments"])
        if isinstance(arguments, str):
            yield f"{word} {dict(call)!r} is no call of {name!r}: {arguments}"
        elif rule.holds(arguments) is not must_hit:
            yield f"{word} {dict(call)!r}: the rule {_why(rule, arguments)}"


def _arguments(tool: Tool, given: Mapping[str, Any]) -> Mapping[str, Any] | str:
    """Returns the arguments as they would run, or a text that says why they would not."""
    try:
        validated = tool.validate(given)
        if isinstance(validated, Invalid):
            wrong = [problem.message for problem in validated.problems if problem.kind != "no_state"]
            return "; ".join(wrong) if wrong else given
        return canonical(validated)
    except BoundValueError:
        # The call raises it to the host. The arguments of the model are right.
        return given
    except Unrepresentable as error:
        return str(error)
    except Exception as error:  # noqa: BLE001 - validators and checks of a tool are its author's code
        return f"{type(error).__name__}: {error}"


def _why(rule: Rule, arguments: Mapping[str, Any]) -> str:
    if rule.holds(arguments):
        return "hits it"
    missed = next(each for each in rule.conditions if each.holds(arguments) is not True)
    return f"does not hit it: {told(missed, arguments)}"


def told(condition: Condition, arguments: Mapping[str, Any]) -> str:
    """Describes the result of a condition for these arguments."""
    value = found(arguments, condition.tokens)
    answer = condition.holds(arguments)
    words = {True: "holds", False: "does not hold", None: "cannot be told"}[answer]
    if answer is not None:
        return f"{condition} {words}"
    if value is MISSING:
        return f"{condition} {words}: it is not there"
    return f"{condition} {words} of {value!r}"

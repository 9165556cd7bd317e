"""Conversion of a JSON value in a reply's text to calls.

Models are trained on these forms, or public APIs answer with them:

* `{"name", "arguments"}`: Hermes, Qwen, Mistral, and the form that our own prompt asks for;
* `{"name", "parameters"}`: Llama 3; `{"name", "args"}`: Gemini; `{"name", "input"}`: Anthropic;
* `{"function": {...}}`, `{"function_call": {...}}`, `{"functionCall": {...}}`, `{"tool_calls": [...]}`: the envelopes
  of OpenAI's and Gemini's answers;
* `{"action", "action_input"}`: the JSON form of ReAct prompts; a list of any of these.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace
from typing import Any, cast

from toolwire.definition.words import nearest
from toolwire.protocols.base import CALL_LIMIT, Refusal, too_many_calls
from toolwire.protocols.reading.repair import fit_arguments, read_arguments
from toolwire.protocols.tool_names import KnownTools, refuse_ambiguous
from toolwire.vocabulary.calls import Problem, ToolCall

_ARGUMENTS = ("arguments", "parameters", "args", "input")
NAME_KEYS = ("name", "tool", "tool_name", "function", "function_name", "action", "recipient_name")
"""Keys under which other formats name the tool."""

ARGUMENT_KEYS = frozenset({*_ARGUMENTS, "action_input"})
"""Keys that hold a call's arguments."""

_ENVELOPES = ("function", "function_call", "functionCall")
_BESIDE = frozenset({"id", "type", "index", "call_id", "status"})
_OF_A_MESSAGE = frozenset({"role", "content", "refusal", "audio", "annotations"})
"""Keys beside `function_call` in OpenAI's older assistant message."""
_OF_A_RESULT = frozenset(
    {"content", "error", "is_error", "success", "status", "id", "role", "type"}
    | {"tool_call_id", "tool_use_id", "call_id"}
)
"""Keys beside the tool's name in a result, also in the messages of an API."""

_SAID_LIMIT = 80
"""Maximum number of characters of the name of an unknown tool that the refusal of its result says."""

FIRST_KEYS = (
    *("name", *_ARGUMENTS, *_ENVELOPES, *_BESIDE, "tool_calls", "action", "action_input", "role", "content"),
    "result_of",
)
"""Keys with which a call, its envelope or a result that a model wrote itself may begin."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundCalls:
    """The calls that one JSON value makes."""

    calls: tuple[ToolCall, ...]
    problems: tuple[Problem, ...] = ()


MADE_UP = (
    "This is a result of {!r}, and only the tool gives results: it was not read. To call the tool, write its name with "
    "`arguments`."
)
"""The refusal of a result that the model wrote itself. `{!r}` is replaced by the tool's name."""


def find_made_up_result(value: Any, known: KnownTools) -> str:
    """Returns the tool's name that a JSON value gives as the source of a result; empty for other values.

    A model may write a result itself: in the form in which it reads results, for whatever tool, or as
    `{"name": TOOL, "content": ...}` of a known tool. Of a list, each item must be one.
    """
    if isinstance(value, list):
        names = [find_made_up_result(item, known) for item in cast("list[Any]", value)]
        return names[0] if names and all(names) else ""
    if not isinstance(value, dict):
        return ""
    node = cast("dict[str, Any]", value)
    if not node.keys() & {"content", "error"}:
        return ""
    source, name = node.get("result_of"), node.get("name")
    if isinstance(source, str):
        return known.find_name(source) or source[:_SAID_LIMIT]
    return known.find_name(name) if isinstance(name, str) and node.keys() <= {"name", *_OF_A_RESULT} else ""


def calls_of(value: Any, raw: str, known: KnownTools, *, is_marked: bool) -> FoundCalls | None:
    """Returns the calls that this value makes. None if it is data.

    `is_marked` is True in places that hold only calls, such as between tags. A value that is not a call is an error
    there.

    Raises:
        Refusal: The value is a damaged call, or is not a call where one is required.
    """
    items = _call_items(value)
    shapes = [_shape(item, known, is_marked=is_marked) for item in items]
    if not items or None in shapes:
        if is_marked:
            raise Refusal('This JSON is not a call. Write {"name": the tool\'s name, "arguments": {its parameters}}.')
        return None
    if len(shapes) > CALL_LIMIT:
        raise too_many_calls()
    found = [_make_call(shape, raw, known) for shape in shapes if shape is not None]
    return FoundCalls(
        calls=tuple(call for call, _ in found), problems=tuple(problem for _, more in found for problem in more)
    )


def call_of_tool(name: str, arguments: Any, raw: str, known: KnownTools) -> FoundCalls:
    """Returns the call of a tool whose name is outside the JSON.

    Raises:
        Refusal: The arguments cannot be read.
    """
    call, problems = _make_call(_Shape(name=name, arguments=arguments, id=""), raw, known)
    return FoundCalls(calls=(call,), problems=problems)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Shape:
    name: str
    arguments: Any
    id: str
    is_enveloped: bool = False
    """True if the call is in the envelope of an API that writes arguments as a JSON string."""


def _call_items(value: Any) -> list[Any]:
    if isinstance(value, dict) and isinstance(value.get("tool_calls"), list):  # pyright: ignore[reportUnknownMemberType]
        node = cast("dict[str, Any]", value)
        value = node["tool_calls"]
        _refuse_unknown({key: item for key, item in node.items() if key not in {"tool_calls", *_OF_A_MESSAGE}})
    return cast("list[Any]", value) if isinstance(value, list) else [value]


def _shape(item: Any, known: KnownTools, *, is_marked: bool) -> _Shape | None:
    if not isinstance(item, dict):
        return None
    node = cast("dict[str, Any]", item)
    for key in _ENVELOPES:
        inner = cast("Any", node.get(key))
        beside = _OF_A_MESSAGE if key == "function_call" and node.get("role") == "assistant" else frozenset[str]()
        if isinstance(inner, dict) and (is_marked or not node.keys() - {key} - _BESIDE - beside):
            if node.keys() & {*_ARGUMENTS} - {key}:
                raise Refusal(f"Arguments stand beside `{key}`. Write them in it.")
            _refuse_unknown({name: item for name, item in node.items() if name not in {key, *beside}})
            shape = _shape(inner, known, is_marked=is_marked)
            if shape is not None:
                _refuse_lost(node.keys() - {key, *beside} - _BESIDE, shape, known)
            return shape and replace(shape, id=_text_or_empty(node.get("id")), is_enveloped=True)
    if isinstance(node.get("action"), str) and "action_input" in node:
        others = {key: item for key, item in node.items() if key not in ("action", "action_input")}
        shape = _Shape(name=node["action"], arguments=node["action_input"], id="")
        _refuse_lost(others.keys(), shape, known)
        _refuse_unknown(others)
        return shape
    if tool := find_made_up_result(node, known):
        return _end(tool, node, known, is_marked=is_marked)
    given = [key for key in _ARGUMENTS if key in node]
    name = node.get("name")
    if not isinstance(name, str) or not name.strip() or not (given or is_marked or known.name(name) in known.schemas):
        return None
    if len(given) > 1:
        raise Refusal(f"A call has both `{given[0]}` and `{given[1]}`. Write `arguments` once.", place=given[1])
    beside = node.keys() - {"name", *given} - _BESIDE
    if "description" in beside:
        raise Refusal(f"This describes the tool {name!r} and does not call it. Write `arguments` with values.")
    if beside and not is_marked:
        return None
    shape = _Shape(name=name, arguments=node[given[0]] if given else {}, id=_text_or_empty(node.get("id")))
    _refuse_lost(node.keys() - {"name", *given}, shape, known)
    _refuse_unknown({key: item for key, item in node.items() if key not in ("name", *given)}, has_arguments=bool(given))
    return shape


def _end(tool: str, node: Mapping[str, Any], known: KnownTools, *, is_marked: bool) -> _Shape | None:
    """Returns the call that ends the work, for a result of its tool: the content is the model's answer.

    A result of any other tool is not a call, and an error is not an answer.

    Raises:
        Refusal: It stands where a call is required.
    """
    ending = known.by_name.get(tool)
    is_answer = "content" in node and "result_of" not in node and node.get("error") is None
    if ending is not None and ending.ends_turn and is_answer:
        answer = _arguments_of_answer(node["content"], [parameter.name for parameter in ending.visible_parameters])
        return _Shape(name=tool, arguments=answer, id=_text_or_empty(node.get("id")))
    if is_marked:
        raise Refusal(MADE_UP.format(tool))
    return None


def _arguments_of_answer(content: Any, parameters: Sequence[str]) -> dict[str, Any]:
    """Returns the arguments that the content is: by name, or the value of the only parameter."""
    if isinstance(content, dict) and content and cast("dict[str, Any]", content).keys() <= set(parameters):
        return cast("dict[str, Any]", content)
    return {parameters[0]: content} if len(parameters) == 1 else {}


def _refuse_lost(beside: AbstractSet[str], call: _Shape, known: KnownTools) -> None:
    """Refuses a call with a parameter beside its arguments, also a misspelt one that they lack: it would be lost."""
    parameters = known.properties(known.name(call.name)).keys()
    arguments: Any = call.arguments
    given: AbstractSet[str] = cast("dict[str, Any]", arguments).keys() if isinstance(arguments, dict) else frozenset()
    # A key such as `id` is the call's own if the arguments have theirs.
    if lost := beside & (parameters - (given & _BESIDE)):
        raise Refusal(f"The parameter {min(lost)!r} stands beside the arguments of {call.name!r}. Write it in them.")
    for key in sorted(beside - _BESIDE):
        if meant := misspelt_name(key, parameters - given):
            raise Refusal(
                f"{key[:40]!r} stands beside the arguments of {call.name!r} and may be its parameter {meant!r}. "
                "Write it in them."
            )


def misspelt_name(key: str, names: Iterable[str]) -> str:
    """Returns the one of these names that a key may be meant to be. Empty without one."""
    known = {name.lower(): name for name in names}
    return known.get(nearest(key.lower(), known) or "", "")


def _refuse_unknown(beside: Mapping[str, Any], *, has_arguments: bool = True) -> None:
    """Refuses a call with a key beside its own that may hold arguments: they would be lost."""
    for key, item in beside.items():
        is_text = isinstance(item, str) and item.lstrip()[:1] in ("{", "[")
        is_lost = is_text or (isinstance(item, dict | list) and bool(cast("Any", item)))
        if is_lost or not (has_arguments or key in _BESIDE):
            raise Refusal(f"The key {key[:40]!r} belongs to no call. Write the tool's parameters in `arguments`.")


def _make_call(shape: _Shape, raw: str, known: KnownTools) -> tuple[ToolCall, tuple[Problem, ...]]:
    name = known.name(shape.name.strip())
    if name not in known.schemas:
        refuse_ambiguous(name, known.names.spellings)
    schema = known.schemas.get(name)
    arguments, problems = _arguments(shape.arguments, schema, name)
    if isinstance(shape.arguments, str) and not shape.is_enveloped:
        message = f"The arguments of {name!r} stand in a JSON string; it was decoded."
        problems = (Problem(message=message, repaired=True), *problems)
    return ToolCall(name, arguments, id=shape.id, raw_text=raw), problems


def _arguments(given: Any, schema: Mapping[str, Any] | None, name: str) -> tuple[dict[str, Any], tuple[Problem, ...]]:
    if given is None:
        return {}, ()
    if isinstance(given, dict):
        return fit_arguments(cast("dict[str, Any]", given), {} if schema is None else schema)
    if not isinstance(given, str):
        raise Refusal(
            f"The arguments of {name!r} are not a JSON object. Write the parameters' names with their values."
        )
    arguments, problems = read_arguments(given, schema)
    if arguments is None:
        raise Refusal(f"The arguments of {name!r} cannot be read. {problems[0].message}", place=problems[0].place)
    return arguments, problems


def _text_or_empty(value: Any) -> str:
    return value if isinstance(value, str) else ""

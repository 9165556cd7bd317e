"""Calls in the formats of other models, read if they have one clear reading.

Such a format wraps JSON in tokens or tags, uses `<invoke>` with parameters, writes a name before its JSON, or writes
Python calls. `read_foreign` reads the first sequence of calls; the rest of the reply is its text.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, cast

from toolwire.protocols.base import CALL_LIMIT, OWN_RESULT, Refusal, too_many_calls
from toolwire.protocols.fillers import FILLER, OPENS
from toolwire.protocols.foreign.call_shapes import NAME, fences, find_own_result, is_all
from toolwire.protocols.foreign.python_calls import bracket_end, python_calls
from toolwire.protocols.foreign.tagged_calls import read_tagged_call
from toolwire.protocols.reading.call_forms import NAME_KEYS, call_of_tool, calls_of
from toolwire.protocols.reading.conversion import convert_argument, guess
from toolwire.protocols.reading.incoming import THINKING, line_of, match_end
from toolwire.protocols.reading.lenient_json import JsonReader
from toolwire.protocols.reading.markup import stray_attribute
from toolwire.protocols.reading.whole_program import CompileBudget
from toolwire.protocols.tool_names import KnownTools
from toolwire.vocabulary.calls import Problem, ToolCall

_START = re.compile(
    rf"""(?<![`"'“‘「])(?:
        (?P<token>{OPENS})
      | <(?:\w{{1,16}}:)?invoke\s | <function= | <(?P<tagged>{NAME})>(?=\s*+[{{<])
      | ✿FUNCTION✿ | <\|channel\|>[^<\n]{{0,64}}?\bto= | <\|tool_call_argument_begin\|>
      )
      | ^[ \t]*+(?:assistant\s*+)?(?:(?:commentary|analysis)\s*+)?(?P<action>to={NAME}|(?:\*\*)?Action(?:\*\*)?[ \t]*+:)
      | ^[ \t]*+(?:\[[ \t]*+)?(?P<called>{NAME})\(
      | ^[ \t]*+```(?:tool_code|tool_calls?)[ \t]*+$
    """,
    re.VERBOSE | re.IGNORECASE | re.MULTILINE,
)
_TO_JSON = r"\s*+(?:```(?:json)?\s*+)?(?=[{\[])"
_HEADS = tuple(
    re.compile(pattern, re.IGNORECASE)
    for pattern in (
        rf"(?:function\s*+)?<｜tool[▁_]sep｜>(?P<name>{NAME}){_TO_JSON}",
        rf"(?P<name>{NAME})\s*+<｜tool[▁_]sep｜>{_TO_JSON}",
        rf"(?P<name>{NAME})\s*+<\|tool_call_argument_begin\|>{_TO_JSON}",
        (
            rf"(?:assistant\s*+)?(?:<\|channel\|>\s*+)?(?:(?:commentary|analysis)\s*+)?to=(?P<name>{NAME})\s*+"
            rf"(?:<\|channel\|>\s*+\w++\s*+)?(?:<\|constrain\|>\s*+)?(?:json|code)?\s*+(?:<\|message\|>)?+{_TO_JSON}"
        ),
        rf"(?P<name>{NAME})(?:\[CALL_ID\]\w++)?\[ARGS\]{_TO_JSON}",
        rf"<function=(?P<name>{NAME})>{_TO_JSON}",
        rf"✿FUNCTION✿\s*+[:：]\s*+(?P<name>{NAME})\s*+✿ARGS✿\s*+[:：]{_TO_JSON}",
        (
            rf"(?:\*\*)?Action(?:\*\*)?[ \t]*+:[ \t*`]*+(?P<name>{NAME})[ \t*`]*+\s*+"
            rf"(?:\*\*)?Action[ ]Input(?:\*\*)?[ \t]*+:(?:\*\*)?{_TO_JSON}"
        ),
        rf"(?:\*\*)?Action(?:\*\*)?[ \t]*+:{_TO_JSON}",
        rf"<(?P<name>{NAME})>{_TO_JSON}",
        rf"(?P<name>{NAME}){_TO_JSON}",
    )
)
_HEAD_ENDS = re.compile(rf"(?:\s*+(?:```|\)|</(?:function|{NAME})>))?+", re.IGNORECASE)
_INVOKE = re.compile(
    rf"""(?:(?:function\s*+)?<｜tool[▁_]sep｜>\s*+)?+<(?:\w{{1,16}}:)?(?:invoke\s++name\s*+=\s*+["'](?P<name>[^"'<>]{{1,256}}+)["']\s*+|function=(?P<function>{NAME}))>""",
    re.VERBOSE | re.IGNORECASE,
)
_PARAMETER = re.compile(
    rf"""\s*+<(?:\w{{1,16}}:)?parameter(?:\s++name\s*+=\s*+["'](?P<name>[^"'<>]{{1,256}}+)["'](?P<more>[^<>]*+)|=(?P<key>{NAME}))>""",
    re.VERBOSE | re.IGNORECASE,
)
_OF_A_PARAMETER = frozenset({"string", "type"})
"""Attributes that tell the kind of a value."""
_PARAMETER_END = re.compile(r"</(?:\w{1,16}:)?parameter>", re.IGNORECASE)
_INVOKE_END = re.compile(r"\s*+</(?:\w{1,16}:)?(?:invoke|function)>", re.IGNORECASE)
_INSIDE = re.compile(r"</?(?:\w{1,16}:)?(?:parameter|invoke|function|arg_key|arg_value|tool_call)\b", re.IGNORECASE)
"""Marks that a value cannot hold: one of them was lost, or stands at the wrong place."""
_PAIRS_HEAD = re.compile(rf"(?P<name>{NAME})\s*+(?=<arg_key>)")
_PAIR = re.compile(r"<arg_key>([^<>]{1,256}+)</arg_key>\s*+<arg_value>")
_PAIR_END = "</arg_value>"
_BEHIND_PAIR = re.compile(r"(?P<text>[^<]*+)</?arg_(?:key|value)>")
_ACTION_CALL = re.compile(rf"(?:\*\*)?Action(?:\*\*)?[ \t]*+:(?:\*\*)?[ \t]*+(?=\[?{NAME}\()", re.IGNORECASE)
_INDEX = re.compile(r":[0-9]{1,4}\Z")
_FRONT = re.compile(
    rf"(?:\s++|<(?P<thinking>{THINKING})>.*?</(?P=thinking)>)*+{FILLER.pattern}", FILLER.flags | re.DOTALL
)
"""Matches the text that may precede a call without a mark."""
_BEHIND_CODE = re.compile(rf"[ \t]*+(?:[,;\]`\n]|</?[\w|｜]|\[/|{NAME}\(|\Z)")
"""Matches behind a Python call that is a statement of its own, and not a part of an expression or of prose."""
_CALLED = re.compile(rf"(?P<name>{NAME})\(")
_ARGUMENT_KEYS = ("arguments", "parameters", "args", "input", "params", "tool_input", "action_input", "tool_args")


@dataclass(frozen=True, slots=True, kw_only=True)
class ForeignCalls:
    """Calls in another model's format, and their positions."""

    calls: tuple[ToolCall, ...]
    problems: tuple[Problem, ...]
    spans: tuple[tuple[int, int], ...]
    """The start and end of each sequence of calls, with the marks around them."""


def read_foreign(text: str, unquoted: str, known: KnownTools) -> ForeignCalls | None:
    """Reads the calls in another model's format, up to an unreadable one or a result that the model wrote itself.

    None if none can be read. Calls in a fence with text around it are skipped. `unquoted` is the text with all quoted
    parts blanked.

    Raises:
        Refusal: The JSON of a call in such a format is damaged, or its arguments cannot be read.
    """
    quoting = [(start, end) for start, end, _ in fences(unquoted) if not is_all(unquoted, start, end)]
    starts = [start for start, _ in quoting]
    reader, spans = _ForeignReader(text, known), list[tuple[int, int]]()
    front = match_end(_FRONT, text)
    for found in _START.finditer(unquoted):
        around = bisect_left(starts, found.start()) - 1
        is_fenced = around >= 0 and found.start() < quoting[around][1]
        name = found["called"] or found["tagged"]
        is_other = name is not None and not known.find_name(name)
        if is_fenced or is_other or (spans and found.start() < spans[-1][1]):
            continue
        if found["called"]:
            # Without any mark only a text that is nothing but calls makes them: other lines are prose or a program.
            alone = _ForeignReader(text, known)
            if found.start() <= front and alone.read(found.start(), is_marked=False) == len(text):
                return alone.foreign_calls([(found.start(), len(text))])
            continue
        own = find_own_result(text, spans[-1][1], found.start()) if spans else None
        if own is not None:
            reader.leave_the_rest(own)
            break
        action = (found["action"] or "").lower()
        is_marked = name is None and (not action or action.startswith("to=functions."))
        end = reader.read(found.start(), is_marked=is_marked)
        if end is None:
            break  # the rest is not searched, so that the time stays linear
        spans.append((found.start(), end))
    return reader.foreign_calls(spans) if spans else None


class _ForeignReader:
    def __init__(self, text: str, known: KnownTools) -> None:
        self._text = text
        self._known = known
        self._calls: list[ToolCall] = []
        self._problems: list[Problem] = []
        self._reader = JsonReader(text)
        self._code_left = CompileBudget.LIMIT

    def foreign_calls(self, spans: list[tuple[int, int]]) -> ForeignCalls:
        return ForeignCalls(calls=tuple(self._calls), problems=tuple(self._problems), spans=tuple(spans))

    def leave_the_rest(self, position: int) -> None:
        """Notes that the model wrote a result itself at this position, so that no later call is taken."""
        place = line_of(self._text, position)
        self._problems.append(Problem(message=OWN_RESULT, repaired=True, place=place, is_loss=True))

    def read(self, start: int, *, is_marked: bool) -> int | None:
        """Reads a sequence of calls and returns its end. None if it begins with none, or has one of an unknown tool."""
        forms: tuple[Callable[[int], int | None], ...] = (
            self._read_headed,
            self._read_invoke,
            self._read_tagged,
            self._read_pairs,
            self._read_json_calls,
            self._read_python,
        )
        before = len(self._calls)
        end = start
        position = self._next(start)
        while position < len(self._text):
            following = next((place for form in forms if (place := form(position)) is not None), None)
            if following is None:
                break
            if len(self._calls) > CALL_LIMIT:
                raise too_many_calls()
            end = match_end(FILLER, self._text, following)
            position = self._next(end)
        calls = self._calls[before:]
        if not calls or not (is_marked or all(call.name in self._known.schemas for call in calls)):
            del self._calls[before:]
            return None
        return end

    def _next(self, position: int) -> int:
        """Returns the position of the next call behind marks without meaning."""
        position = match_end(FILLER, self._text, position)
        return match_end(_ACTION_CALL, self._text, position)

    def _read_headed(self, position: int) -> int | None:
        """Reads a name with its JSON arguments after it. After `Action:` the JSON may hold the whole call."""
        for head in _HEADS:
            found = head.match(self._text, position)
            if found is None:
                continue
            name = found.groupdict().get("name")
            tool = self._known.find_name(name)
            if name is not None and not tool and head in _HEADS[-2:]:
                return None  # only a word before a bracket, or an ordinary tag
            value, end = self._json(found.end())
            if name is None:
                return self._add_value(value, self._text[position:end], end)
            end = match_end(_HEAD_ENDS, self._text, end)
            self._add(call_of_tool(tool or _clean(name), value, self._text[position:end], self._known).calls)
            return end
        return None

    def _read_invoke(self, position: int) -> int | None:
        found = _INVOKE.match(self._text, position)
        if found is None:
            return None
        name, end = str(found["name"] or found["function"]), found.end()
        arguments: dict[str, str] = {}
        while parameter := _PARAMETER.match(self._text, end):
            if stray := stray_attribute(parameter["more"], _OF_A_PARAMETER):
                message = f"A parameter holds {stray[:40]!r} in its tag. Write the value between its tags."
                raise Refusal(message, place=line_of(self._text, parameter.start()))
            closing = _PARAMETER_END.search(self._text, parameter.end())
            if closing is None:
                raise Refusal("A parameter is never closed: the reply ends in the middle of the call. Make it shorter.")
            value = self._text[parameter.end() : closing.start()]
            if parameter["key"]:
                value = value.removeprefix("\n").removesuffix("\n")
            _put(arguments, parameter["name"] or parameter["key"], value)
            end = closing.end()
        ending = _INVOKE_END.match(self._text, end)
        if ending is None:
            return None
        self._add((self._make_call(name, arguments, self._text[position : ending.end()]),))
        return ending.end()

    def _read_tagged(self, position: int) -> int | None:
        found = read_tagged_call(self._text, position, self._known)
        if found is None:
            return None
        self._problems += found.problems
        self._add((self._make_call(found.name, found.texts, self._text[position : found.end]),))
        return found.end

    def _read_pairs(self, position: int) -> int | None:
        found = _PAIRS_HEAD.match(self._text, position)
        if found is None:
            return None
        end = found.end()
        arguments: dict[str, str] = {}
        while pair := _PAIR.match(self._text, end):
            closing = self._text.find(_PAIR_END, pair.end())
            if closing < 0:
                raise Refusal("A value is never closed: the reply ends in the middle of the call. Make it shorter.")
            _put(arguments, pair[1].strip(), self._text[pair.end() : closing])
            end = closing + len(_PAIR_END)
            end += len(self._text[end : end + 64]) - len(self._text[end : end + 64].lstrip())
        if lost := _BEHIND_PAIR.match(self._text, end):
            message = f"{lost['text'].strip()[:40]!r} stands between two pairs of one call. Write <arg_key> next."
            raise Refusal(message, place=line_of(self._text, end))
        self._add((self._make_call(found["name"], arguments, self._text[position:end]),))
        return end

    def _read_json_calls(self, position: int) -> int | None:
        """Reads calls in JSON."""
        if self._text[position] not in "{[" or _CALLED.match(self._text, position + 1):
            return None
        value, end = self._json(position)
        return self._add_value(value, self._text[position:end], end)

    def _read_python(self, position: int) -> int | None:
        """Reads calls in Python syntax with only literals as arguments."""
        is_list = self._text[position] == "["
        found = _CALLED.match(self._text, position + is_list)
        end = None if found is None else bracket_end(self._text, position if is_list else found.end() - 1)
        self._code_left -= 0 if end is None else end - position
        if end is None or self._code_left < 0 or not _BEHIND_CODE.match(self._text, end):
            return None
        source = self._text[position:end]
        calls = python_calls(source)
        if not calls or not all(self._known.find_name(name) for name, _ in calls):
            return None
        for name, arguments in calls:
            self._add(call_of_tool(self._known.find_name(name), arguments, source, self._known).calls)
        return end

    def _json(self, position: int) -> tuple[Any, int]:
        value, end, problems = self._reader.read(position)
        self._problems += problems
        return value, end

    def _add_value(self, value: Any, raw: str, end: int) -> int | None:
        found = calls_of(_usual(value), raw, self._known, is_marked=False)
        if found is None:
            return None
        self._problems += found.problems
        self._add(found.calls)
        return end

    def _add(self, calls: tuple[ToolCall, ...]) -> None:
        for call in calls:
            name = self._known.find_name(call.name) or _clean(call.name)
            self._calls.append(ToolCall(name, call.arguments, id=call.id, raw_text=call.raw_text))

    def _make_call(self, name: str, texts: dict[str, str], raw: str) -> ToolCall:
        """Makes a call from arguments in text form. The tool's schema converts them."""
        tool = self._known.find_name(name)
        if not tool:
            return ToolCall(name, {key: guess(text) for key, text in texts.items()}, raw_text=raw)
        arguments = dict[str, Any]()
        for key, text in texts.items():
            found = convert_argument(key, text, self._known.schemas[tool])
            arguments[key] = found.value
            self._problems += found.problems
        return ToolCall(tool, arguments, raw_text=raw)


def _clean(name: str) -> str:
    """Returns the name of an unknown tool without the namespace and number that some formats add."""
    return _INDEX.sub("", name).removeprefix("functions.")


def _put(arguments: dict[str, str], name: str, value: str) -> None:
    if inside := _INSIDE.search(value):
        raise Refusal(f"The value of {name[:40]!r} holds {inside[0]}: it is not clear where it ends. Close each value.")
    if name in arguments:
        raise Refusal(f"The parameter {name[:40]!r} is given twice in one call. Write it once.")
    arguments[name] = value


def _usual(value: Any) -> Any:
    """Returns the value with name and arguments under the usual keys. The list in an envelope is unwrapped."""
    if isinstance(value, list):
        return [_usual(item) for item in cast("list[Any]", value)]
    if not isinstance(value, dict):
        return value
    node = cast("dict[str, Any]", value)
    if len(node) == 1:
        (inner,) = node.values()
        if isinstance(inner, list):
            return _usual(inner)
    name = [key for key in NAME_KEYS if isinstance(node.get(key), str)]
    arguments = [key for key in _ARGUMENT_KEYS if key in node]
    if len(name) != 1 or len(arguments) != 1:
        return node
    others = {key: item for key, item in node.items() if key not in (name[0], arguments[0], "tool_call_id")}
    return {"name": node[name[0]], "arguments": node[arguments[0]], **others}

"""Sample calls for the examples in prompts: the author's own examples first, then samples made from the schema.

A sample is used only if the tool accepts it.
"""

from __future__ import annotations

import ast
import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, cast

from toolwire.definition.derived import input_schema_of, once_per_text
from toolwire.definition.from_schema import from_schema
from toolwire.definition.naming import program_name
from toolwire.definition.tool import Invalid, Tool
from toolwire.definition.words import limit_references, resolve
from toolwire.protocols.text.wording import UNFIT_WORDS, Phrases, Unfit
from toolwire.vocabulary.effects import Effect
from toolwire.vocabulary.errors import BoundValueError, DefinitionError

_DEPTH = 4

_EXAMPLE_TOOLS = 8
"""Number of made-up tools that are kept. Almost every prompt has the first."""

_REQUEST_LIMIT = 60
"""Maximum length in characters of a tool description that an example uses as its request."""

_TEXT_LIMIT = 1_000
"""Maximum length of a sample in characters. A longer sample does not belong in a prompt."""

# Keyed by the end of a parameter's name. Each key has two values, so that two sample calls can differ.
_STRINGS = {
    "query": ("quarterly report", "open questions"),
    "keyword": ("invoice", "contract"),
    "path": ("/data/report.txt", "/data/notes.txt"),
    "file": ("/data/report.txt", "/data/notes.txt"),
    "filename": ("report.txt", "notes.txt"),
    "directory": ("/data", "/data/archive"),
    "folder": ("/data", "/data/archive"),
    "pattern": ("*.txt", "*.md"),
    "url": ("https://example.com/a", "https://example.com/b"),
    "city": ("Oslo", "Lima"),
    "location": ("Oslo", "Lima"),
    "country": ("Norway", "Peru"),
    "name": ("Ada", "Lin"),
    "email": ("ada@example.com", "lin@example.com"),
    "language": ("en", "zh"),
    "text": ("Hello", "Good evening"),
    "content": ("Hello", "Good evening"),
    "message": ("Hello", "Good evening"),
    "date": ("2026-03-01", "2026-03-02"),
    "id": ("a1", "b2"),
}
_ANY_STRING = ("first", "second")
_FORMATS = {
    "date-time": ("2026-03-01T09:00:00", "2026-03-02T09:00:00"),
    "date": ("2026-03-01", "2026-03-02"),
    "time": ("09:00:00", "17:30:00"),
    "duration": ("PT1H", "PT30M"),
    "uuid": ("00000000-0000-4000-8000-000000000001", "00000000-0000-4000-8000-000000000002"),
    "uri": _STRINGS["url"],
    "email": _STRINGS["email"],
    "path": _STRINGS["path"],
}


@once_per_text
@limit_references
def sample_arguments(tool: Tool) -> list[dict[str, Any]]:
    """Returns up to two different sets of arguments that the tool accepts, best first. Empty if none could be made."""
    found: list[dict[str, Any]] = []
    for arguments in itertools.chain(_from_examples(tool), _from_schema(tool)):
        if arguments not in found and _is_accepted(tool, arguments):
            found.append(arguments)
        if len(found) == 2:
            break
    return found


Calls = Sequence[tuple[Tool, dict[str, Any]]]
"""Calls of tools with their arguments."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Samples:
    """The calls of a prompt's examples."""

    calls: tuple[tuple[Tool, dict[str, Any]], ...]
    """Two calls, or one if a tool accepts only one set of arguments."""
    made_up: str = ""
    """The name of the tool if it was made up for the examples. Such a tool is not offered."""

    def note(self, phrases: Phrases) -> str:
        """Returns a line that says so, or an empty text."""
        return phrases.made_up.format(self.made_up) if self.made_up else ""

    @property
    def examples(self) -> list[Calls]:
        """The calls of each example. The first makes one call: a small model makes as many as the first example."""
        return [self.calls[:count] for count in range(1, len(self.calls) + 1)]


def sample_calls(tools: Sequence[Tool]) -> Samples:
    """Returns calls that do no harm if a model sends the example back.

    They call tools that only read and need no approval, first those with arguments. Without such a tool they call a
    made-up one that is not offered.
    """
    found = [(tool, samples) for tool in tools if _is_harmless(tool) and (samples := sample_arguments(tool))]
    telling = [(tool, samples) for tool, samples in found if samples[0]] or found
    if len(telling) > 1:
        return Samples(calls=tuple((tool, samples[0]) for tool, samples in telling[:2]))
    if telling:
        tool, samples = telling[0]
        return Samples(calls=tuple((tool, arguments) for arguments in samples[:2]))
    tool = _make_up_tool({program_name(tool.name) for tool in tools})
    return Samples(calls=tuple((tool, {"city": city}) for city in _STRINGS["city"]), made_up=tool.name)


def finish_of(tools: Iterable[Tool]) -> Tool | None:
    """Returns the tool by which the model ends its work; None if it ends by plain text alone."""
    return next((tool for tool in tools if tool.ends_turn), None)


def _is_harmless(tool: Tool) -> bool:
    return not tool.ends_turn and tool.permission == "auto" and tool.effects.kinds == frozenset[Effect]({"read"})


def _make_up_tool(taken: set[str]) -> Tool:
    names = itertools.chain(["example_tool"], (f"example_tool_{number}" for number in itertools.count(2)))
    return _example_tool(next(name for name in names if name not in taken))


@lru_cache(maxsize=_EXAMPLE_TOOLS)
def _example_tool(name: str) -> Tool:
    schema = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
    return from_schema(name, input_schema=schema, function=_never_called, effects=["read"])


def _never_called(**_arguments: object) -> None:
    """Is never called: the made-up tool is in no toolkit."""


def write_examples(
    samples: Samples, phrases: Phrases, write_reply: Callable[[Calls], str], write_name: Callable[[str], str] = str
) -> list[str]:
    """Returns each example: a request, and the reply to it. `write_name` writes the name of a tool in the request."""
    return [
        phrases.example.format(write_request([tool for tool, _ in calls], phrases, write_name), write_reply(calls))
        for calls in samples.examples
    ]


def write_request(tools: Sequence[Tool], phrases: Phrases, write_name: Callable[[str], str] = str) -> str:
    """Returns a user's request that takes a call of each of these tools."""
    if len(tools) > len({tool.name for tool in tools}):
        return phrases.use_twice.format(write_name(tools[0].name))
    return phrases.and_then.join(
        _first_line(tool, phrases) or phrases.use.format(write_name(tool.name)) for tool in tools
    )


def _first_line(tool: Tool, phrases: Phrases) -> str:
    """Returns the first line of a tool's description as a request. Empty if it is none."""
    first = tool.description.strip().partition("\n")[0]
    # An outside author's description must not appear as a user's request.
    if tool.is_outside or not first or len(first) > _REQUEST_LIMIT:
        return ""
    return first if first[-1] in ".。!！?？" else f"{first}{phrases.full_stop}"


def unfit_request(tools: Iterable[Tool], phrases: Phrases) -> Unfit:
    """Returns a request that none of the tools can meet."""
    offered = " ".join(f"{tool.name} {tool.description}" for tool in tools).lower()
    requests = zip(UNFIT_WORDS, phrases.unfit, strict=True)
    return next(unfit for words, unfit in requests if not any(word in offered for word in words))


def _is_accepted(tool: Tool, arguments: dict[str, Any]) -> bool:
    try:
        answer = tool.validate(arguments)
    except BoundValueError:
        # The call raises it to the host. A prompt can be written before that.
        return True
    except DefinitionError:
        # An unusable schema is reported when the tool is called. The prompt still describes the other tools.
        return False
    # The host may set the state after the prompt is written.
    return not isinstance(answer, Invalid) or all(problem.kind == "no_state" for problem in answer.problems)


def _from_examples(tool: Tool) -> Iterator[dict[str, Any]]:
    for example in (*tool.examples, *tool.docs.examples):
        if isinstance(example, Mapping):
            yield dict(cast("Mapping[str, Any]", example))
        elif isinstance(example, str):
            for line in example.split("\n"):
                yield from _calls_in(line.strip().removeprefix(">>>").strip(), tool)


def _calls_in(line: str, tool: Tool) -> Iterator[dict[str, Any]]:
    try:
        nodes = ast.walk(ast.parse(line))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return
    for node in nodes:
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == tool.name:
            arguments = _literal_arguments(node, tool)
            if arguments is not None:
                yield arguments


def _literal_arguments(call: ast.Call, tool: Tool) -> dict[str, Any] | None:
    names = [parameter.name for parameter in tool.visible_parameters if parameter.kind != "keyword_only"]
    if len(call.args) > len(names):
        return None
    try:
        given = {name: ast.literal_eval(value) for name, value in zip(names, call.args, strict=False)}
        return given | {keyword.arg: ast.literal_eval(keyword.value) for keyword in call.keywords if keyword.arg}
    except (ValueError, TypeError, RecursionError):
        return None


def _from_schema(tool: Tool) -> Iterator[dict[str, Any]]:
    root = input_schema_of(tool)
    needed = [parameter for parameter in tool.visible_parameters if parameter.required]
    for turn in (0, 1):
        yield {item.name: _sample(item.schema, root, item.name, turn, _DEPTH) for item in needed}


def _sample(schema: Any, root: Mapping[str, Any], name: str, turn: int, depth: int) -> Any:
    node = resolve(schema, root)
    for key in ("examples", "enum"):
        if node.get(key):
            return node[key][min(turn, len(node[key]) - 1)]
    for key in ("const", "default"):
        if key in node:
            return node[key]
    options = cast("list[Any]", node.get("anyOf") or node.get("oneOf") or [])
    if options and depth:
        return _sample(options[0], root, name, turn, depth - 1)
    kind = node.get("type")
    if kind == "array":
        count = max(1, node.get("minItems", 1)) if depth else 0
        places = node.get("prefixItems") or [node.get("items", {})] * min(count, 8)
        return [_sample(place, root, name.removesuffix("s"), turn, depth - 1) for place in places] if depth else []
    if kind == "object":
        inner = cast("Mapping[str, Any]", node.get("properties", {}))
        return (
            {key: _sample(inner.get(key), root, key, turn, depth - 1) for key in node.get("required", [])}
            if depth
            else {}
        )
    return _scalar(kind, node, name, turn)


def _scalar(kind: Any, node: Mapping[str, Any], name: str, turn: int) -> Any:
    if kind == "integer" or kind == "number":
        return _number(node, turn)
    if kind == "boolean":
        return turn == 0
    if kind == "null":
        return None
    if node.get("contentEncoding") == "base64":
        return "aGVsbG8="
    word = name.lower().rpartition("_")[2]
    text = _FORMATS.get(node.get("format", ""), _STRINGS.get(word, _ANY_STRING))[turn]
    return text.ljust(min(node.get("minLength", 0), _TEXT_LIMIT), "x")[
        : node.get("maxLength", len(text) + node.get("minLength", 0))
    ]


def _number(node: Mapping[str, Any], turn: int) -> int | float:
    step = node.get("multipleOf", 1)
    least = node.get("minimum", node.get("exclusiveMinimum", -step) + step if "exclusiveMinimum" in node else None)
    most = node.get("maximum", node.get("exclusiveMaximum"))
    value = (3 + 2 * turn) * step
    if least is not None and value < least:
        value = least + turn * step
    if most is not None and value > most:
        return most if least is None else least
    return value

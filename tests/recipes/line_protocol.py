"""A calling format of a user's own: a line for each call, `>> name {"argument": 1}`. Everything else is text."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import Any

from toolwire import ConfigurationError, Reply, ToolCall, ToolResult
from toolwire.protocols import StreamEvent
from toolwire.types import Problem

_MARK = ">> "
_REPLY_LIMIT_BYTES = 262_144


class LineProtocol:
    """Reads and writes a line for each call."""

    name = "lines"
    is_native = False
    reminder = ""
    writes_programs = False

    def describe(self, tools: Iterable[Any], *, language: str = "en", thought: str = "short") -> str:
        head = 'To call a tool, write a line such as `>> search {"query": "otters"}`.'
        return f"{head}\n{self.tools_text(tools)}"

    def tools_text(self, tools: Iterable[Any], *, language: str = "en") -> str:
        lines = [f"{tool.name}: {tool.description} {json.dumps(tool.input_schema)}" for tool in tools]
        return "\n".join(lines) or "There are no tools."

    def recognises(self, reply: Any) -> bool:
        return isinstance(reply, str) and reply.startswith(_MARK)

    def parse(self, reply: Any, tools: Iterable[Any] = ()) -> Reply:
        if reply is not None and not isinstance(reply, str | bytes):
            raise ConfigurationError(f"a reply is text, not {type(reply).__name__}: give the model's message")
        text = reply.decode("utf-8", "replace") if isinstance(reply, bytes) else reply or ""
        if len(text.encode("utf-8", "replace")) > _REPLY_LIMIT_BYTES:
            return Reply(problems=(Problem(message="The reply is too long.", repaired=False, place=""),))
        calls: list[ToolCall] = []
        problems: list[Problem] = []
        rest: list[str] = []
        for number, line in enumerate(text.split("\n"), 1):
            if not line.startswith(_MARK):
                rest.append(line)
                continue
            try:
                calls.append(_call(line, f"call_{len(calls)}"))
            except (ValueError, RecursionError) as error:
                problems.append(Problem(message=f"Line {number}: {error}", repaired=False, place=f"line {number}"))
        if problems:
            return Reply(problems=tuple(problems), refused_calls=tuple(calls))
        return Reply(calls=tuple(calls), text="\n".join(rest).strip())

    def stream(self, tools: Iterable[Any] = ()) -> LineStream:
        return LineStream(self, tools)

    def render(self, calls: Sequence[ToolCall]) -> str:
        return "\n".join(f"{_MARK}{call.name} {json.dumps(dict(call.arguments))}" for call in calls)

    def prompt(self, content: Any) -> list[dict[str, Any]]:
        texts = [
            part if isinstance(part, str) else part["text"]
            for part in ([content] if isinstance(content, str) else content)
        ]
        return [{"role": "user", "content": "\n".join(texts)}]

    def format(self, results: Sequence[ToolResult]) -> str:
        return (
            "\n".join(f"{result.call.name if result.call else ''}: {result.text}" for result in results)
            .encode("utf-8", "replace")
            .decode()
        )

    def refuse(self, reply: Reply) -> str:
        return "\n".join(problem.message for problem in reply.problems if not problem.repaired)

    def grammar(self, tools: Iterable[Any]) -> str:
        return 'root ::= ">> " [a-z_]+ " {" [^\\n]* "}"'


def _call(line: str, id: str) -> ToolCall:
    name, _, written = line.removeprefix(_MARK).partition(" ")
    arguments = json.loads(written)
    if not isinstance(arguments, dict):
        raise ValueError("the arguments are a JSON object")
    return ToolCall(name, arguments, id=id, raw_text=line)


class LineStream:
    """Keeps the pieces and reads them at the end."""

    def __init__(self, protocol: LineProtocol, tools: Iterable[Any]) -> None:
        self._protocol, self._tools = protocol, tuple(tools)
        self._pieces: list[str] = []

    def feed(self, delta: Any) -> list[StreamEvent]:
        self._pieces.append(str(delta))
        return []

    def reply(self) -> Reply:
        return self._protocol.parse("".join(self._pieces), self._tools)

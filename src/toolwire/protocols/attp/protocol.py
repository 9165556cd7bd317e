"""ATTP: the model replies with a TOML document that holds a Python program, and the program calls the tools."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Any

from toolwire.protocols.attp.answer import format_attp, refuse_attp
from toolwire.protocols.attp.grammar import attp_grammar
from toolwire.protocols.attp.parse import parse_attp
from toolwire.protocols.attp.prompt import StubStyle, attp_tools_text, describe_attp
from toolwire.protocols.attp.render import render_attp
from toolwire.protocols.attp.stream import AttpStream
from toolwire.protocols.base import Language, Thought
from toolwire.protocols.outgoing import writes_encodable
from toolwire.vocabulary.calls import PROGRAM_MODULES, Reply, ToolCall
from toolwire.vocabulary.results import ToolResult

_HEADER = re.compile(r"^[ \t]*\[[ \t]*tool_call[ \t]*\][ \t]*$", re.MULTILINE)


@writes_encodable
class Attp:
    """The protocol `attp`. The object has no state."""

    @property
    def name(self) -> str:
        """Always `attp`."""
        return "attp"

    @property
    def is_native(self) -> bool:
        """Always False. The model writes calls into its text."""
        return False

    @property
    def writes_programs(self) -> bool:
        """Always True. A program makes every call."""
        return True

    def recognises(self, reply: Any) -> bool:
        """True for text with the line `[tool_call]`."""
        if isinstance(reply, bytes):
            reply = reply.decode("utf-8", "replace")
        return isinstance(reply, str) and _HEADER.search(reply) is not None

    def describe(
        self,
        tools: Iterable[Any],
        *,
        language: Language = "en",
        thought: Thought = "short",
        style: StubStyle = "full",
        modules: Sequence[str] = PROGRAM_MODULES,
    ) -> str:
        """Returns the system prompt: rules, tools as Python stubs, modules, templates, constraints and two examples.

        `thought="full"` asks for four points of reasoning; the default asks for one line. A full thought costs the
        model about two thirds more tokens per call. `style="compact"` describes each tool in fewer tokens: no examples,
        one line per parameter, and the bounds of its values. `modules` are the ones that programs may use.

        Raises:
            ConfigurationError: The language, the thought style or the stub style is unknown.
        """
        return describe_attp(tools, language=language, thought=thought, style=style, modules=modules)

    def tools_text(self, tools: Iterable[Any], *, language: Language = "en", style: StubStyle = "full") -> str:
        """Returns the Python stubs of the tools in a code fence, as in the system prompt.

        Raises:
            ConfigurationError: The language or style is unknown.
        """
        return attp_tools_text(tools, language=language, style=style)

    def parse(self, reply: Any, tools: Iterable[Any] = ()) -> Reply:
        """Returns one call of `code_execution`, a failure, an answer in plain prose, or problems.

        `tools` are needed to distinguish prose from a call in another format. Such a call is refused.
        """
        return parse_attp(reply, tools)

    def stream(self, tools: Iterable[Any] = ()) -> AttpStream:
        """Returns a parser for streamed text. It reports the program line by line."""
        known = tuple(tools)
        return AttpStream(lambda reply: parse_attp(reply, known))

    def render(self, calls: Sequence[ToolCall], *, thought: str = "", target: str = "") -> str:
        """Returns the reply with which a model would make these calls.

        Raises:
            ConfigurationError: No calls are given, or a program is given together with other calls.
            Unrepresentable: An argument has no Python literal.
        """
        return render_attp(calls, thought=thought, target=target)

    def format(self, results: Sequence[ToolResult]) -> str:
        """Returns the results as text. Each of several results has a heading with its number and its call's name."""
        return format_attp(results)

    def refuse(self, reply: Reply) -> str:
        """Returns the problems and the expected form, or the message of a reply that failed.

        Empty if the reply has calls.
        """
        return refuse_attp(reply)

    def grammar(self, tools: Iterable[Any]) -> str:
        """Returns a GBNF grammar for programs of one to eight explicit calls with valid arguments.

        Raises:
            ConfigurationError: None of the tools can be called.
        """
        return attp_grammar(tools)

"""ATTP: a model replies in TOML, and what it wants done is a Python program that calls tools."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Any

from toolwire.protocols.attp_answer import format_attp, refuse_attp
from toolwire.protocols.attp_parse import parse_attp
from toolwire.protocols.attp_prompt import StubStyle, describe_attp
from toolwire.protocols.attp_render import render_attp
from toolwire.protocols.attp_stream import AttpStream
from toolwire.protocols.base import Language, Thought
from toolwire.protocols.grammar_attp import attp_grammar
from toolwire.protocols.outgoing import writes_encodable
from toolwire.vocabulary.calls import Reply, ToolCall
from toolwire.vocabulary.results import ToolResult

_HEADER = re.compile(r"^[ \t]*\[[ \t]*tool_call[ \t]*\][ \t]*$", re.MULTILINE)


@writes_encodable
class Attp:
    """The protocol object. It holds nothing."""

    @property
    def name(self) -> str:
        """`attp`."""
        return "attp"

    @property
    def is_native(self) -> bool:
        """False: calls stand in the model's text."""
        return False

    @property
    def writes_programs(self) -> bool:
        """True: every call is made by a program."""
        return True

    def recognises(self, reply: Any) -> bool:
        """Whether it is text with a line `[tool_call]`."""
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
    ) -> str:
        """The whole system prompt: rules, the tools as Python stubs, modules, templates, constraints, two examples.

        `thought="full"` asks for four points of reasoning where one line is the default: it costs a model about two
        thirds more tokens a call. `style="compact"` tells of each tool in fewer tokens: no examples, one line a
        parameter, bounds told.

        Raises:
            ConfigurationError: an unknown language, thought or style.
        """
        return describe_attp(tools, language=language, thought=thought, style=style)

    def parse(self, reply: Any, tools: Iterable[Any] = ()) -> Reply:
        """One call of `code_execution`, a failure, an answer in plain prose, or problems.

        `tools` tell prose from a call in another form, which is refused.
        """
        return parse_attp(reply, tools)

    def stream(self, tools: Iterable[Any] = ()) -> AttpStream:
        """Takes text; tells of the program as it comes."""
        known = tuple(tools)
        return AttpStream(lambda reply: parse_attp(reply, known))

    def render(self, calls: Sequence[ToolCall], *, thought: str = "", target: str = "") -> str:
        """The reply by which a model would make these calls.

        Raises:
            ConfigurationError: no call, or a program beside other calls.
            Unrepresentable: an argument that has no literal.
        """
        return render_attp(calls, thought=thought, target=target)

    def format(self, results: Sequence[ToolResult]) -> str:
        """The text of one result as it is; of several, each under a line with its place and its call's name."""
        return format_attp(results)

    def refuse(self, reply: Reply) -> str:
        """Why nothing ran, and the form to write; for a reply that gave up, its message. Empty for a call."""
        return refuse_attp(reply)

    def grammar(self, tools: Iterable[Any]) -> str:
        """GBNF of replies that succeed: a program of one to eight calls, each written out, with arguments that fit.

        Raises:
            ConfigurationError: no tool that can be called.
        """
        return attp_grammar(tools)

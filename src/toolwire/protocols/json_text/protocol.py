"""JSON in text, for models whose API has no fields for calls, and for models whose chat template lost its tokens."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from toolwire.protocols.base import Language, Thought
from toolwire.protocols.json_text.grammar import json_grammar
from toolwire.protocols.json_text.layout import is_plainly_in_this_format
from toolwire.protocols.json_text.prompt import describe_json_text, json_tools_text
from toolwire.protocols.json_text.render import format_json_text, refuse_json_text, render_json_text
from toolwire.protocols.json_text.stream import JsonTextStream
from toolwire.protocols.outgoing import writes_encodable
from toolwire.protocols.text_parse import parse_json_text
from toolwire.vocabulary.calls import Reply, ToolCall
from toolwire.vocabulary.results import ToolResult


@writes_encodable
class JsonText:
    """The protocol `json`. The object has no state."""

    @property
    def name(self) -> str:
        """Always `json`."""
        return "json"

    @property
    def is_native(self) -> bool:
        """Always False. The model writes calls into its text."""
        return False

    @property
    def writes_programs(self) -> bool:
        """Always False. The prompt explains programs only if `code_execution` is among the tools."""
        return False

    def describe(self, tools: Iterable[Any], *, language: Language = "en", thought: Thought = "short") -> str:
        """Returns the system prompt: the form of a call, the tools with one line per parameter, and an example.

        `thought="full"` asks for a few lines before the calls; the default asks for none.

        Raises:
            ConfigurationError: The language or the thought style is unknown.
        """
        return describe_json_text(tools, language=language, thought=thought)

    def tools_text(self, tools: Iterable[Any], *, language: Language = "en") -> str:
        """Returns a line for each tool and each described parameter, as in the system prompt.

        If `code_execution` is among the tools, the way to write a program follows.

        Raises:
            ConfigurationError: The language is unknown.
        """
        return json_tools_text(tools, language=language)

    def recognises(self, reply: Any) -> bool:
        """True if the reply begins with a call: a tag, JSON with a call's keys, or a fence around either."""
        return isinstance(reply, str | bytes) and is_plainly_in_this_format(reply)

    def parse(self, reply: Any, tools: Iterable[Any] = ()) -> Reply:
        """Returns the calls, a program from a single Python block, or an answer in plain text.

        The schemas of `tools` help to read arguments. If tools are given, a Python block that calls none of them is an
        answer.
        """
        return parse_json_text(reply, tools)

    def stream(self, tools: Iterable[Any] = ()) -> JsonTextStream:
        """Returns a parser for a reply that arrives in pieces."""
        return JsonTextStream(tools)

    def render(self, calls: Sequence[ToolCall]) -> str:
        """Returns the reply with which a model would make these calls.

        Raises:
            Unrepresentable: JSON cannot hold one of the arguments.
        """
        return render_json_text(calls)

    def format(self, results: Sequence[ToolResult]) -> str:
        """Returns each result as one JSON object between `<tool_response>` tags."""
        return format_json_text(results)

    def refuse(self, reply: Reply) -> str:
        """Returns the problems and the expected form. Empty if the reply has calls or an answer."""
        return refuse_json_text(reply)

    def grammar(self, tools: Iterable[Any]) -> str:
        """Returns a GBNF grammar for replies that make one to eight calls of these tools.

        Raises:
            ConfigurationError: None of the tools can be called.
        """
        return json_grammar(tools)

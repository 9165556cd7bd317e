"""JSON in text: for models whose API has no fields for calls, and for those whose template lost its own tokens."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from toolwire.protocols.base import Language, Thought
from toolwire.protocols.grammar_json import json_grammar
from toolwire.protocols.json_text_layout import is_plainly_in_this_format
from toolwire.protocols.json_text_prompt import describe_json_text
from toolwire.protocols.json_text_render import format_json_text, refuse_json_text, render_json_text
from toolwire.protocols.json_text_stream import JsonTextStream
from toolwire.protocols.outgoing import writes_encodable
from toolwire.protocols.text_parse import parse_json_text
from toolwire.vocabulary.calls import Reply, ToolCall
from toolwire.vocabulary.results import ToolResult


@writes_encodable
class JsonText:
    """The protocol object. It holds nothing."""

    @property
    def name(self) -> str:
        """`json`."""
        return "json"

    @property
    def is_native(self) -> bool:
        """False: calls stand in the text."""
        return False

    @property
    def writes_programs(self) -> bool:
        """False: its prompt speaks of programs only where `code_execution` is among the tools."""
        return False

    def describe(self, tools: Iterable[Any], *, language: Language = "en", thought: Thought = "short") -> str:
        """The whole system prompt: the form of a call, the tools in one line and one per parameter, an example.

        `thought="full"` asks for a few lines before the calls; by default nothing is asked for.

        Raises:
            ConfigurationError: an unknown language or thought.
        """
        return describe_json_text(tools, language=language, thought=thought)

    def recognises(self, reply: Any) -> bool:
        """Whether the reply begins with a call: a tag, JSON with a call's keys, or a fence around either."""
        return isinstance(reply, str | bytes) and is_plainly_in_this_format(reply)

    def parse(self, reply: Any, tools: Iterable[Any] = ()) -> Reply:
        """The calls, a program from a lone block of Python, or an answer in plain text.

        With `tools` their schemas help to read arguments, and a block of Python that calls none of them is an answer.
        """
        return parse_json_text(reply, tools)

    def stream(self, tools: Iterable[Any] = ()) -> JsonTextStream:
        """Reads a reply while it comes in."""
        return JsonTextStream(tools)

    def render(self, calls: Sequence[ToolCall]) -> str:
        """The reply by which a model would make these calls.

        Raises:
            Unrepresentable: an argument that has no JSON form.
        """
        return render_json_text(calls)

    def format(self, results: Sequence[ToolResult]) -> str:
        """Each result as one JSON object between `<tool_response>` tags."""
        return format_json_text(results)

    def refuse(self, reply: Reply) -> str:
        """Why nothing ran, and the form to write; empty for calls and for an answer."""
        return refuse_json_text(reply)

    def grammar(self, tools: Iterable[Any]) -> str:
        """GBNF for one or more calls of these tools between tags."""
        return json_grammar(tools)

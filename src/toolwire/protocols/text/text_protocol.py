"""The class of every text protocol. Its parts are values; `text_formats.py` has them for each format."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from toolwire.protocols.outgoing import WRITES, encodable_result, unrun_text
from toolwire.protocols.reading.incoming import tag_thinking, text_of_reply
from toolwire.protocols.text_stream import TextStream
from toolwire.protocols.tool_names import KnownTools, as_known_tools
from toolwire.protocols.user_prompt import PromptContent, text_prompt
from toolwire.vocabulary.calls import Reply
from toolwire.vocabulary.texts.lone_surrogates import encodable


@dataclass(frozen=True, kw_only=True)
class TextProtocol:
    """A protocol whose calls stand in the text of a reply, made of the parts of its format. It has no state.

    The methods that are parts are described by `CallingProtocol`.
    """

    name: str
    reminder: str
    """It cannot be read as a call, because a model copies it. The prompt has the examples."""
    describe: Callable[..., str] = field(repr=False)
    tools_text: Callable[..., str] = field(repr=False)
    is_in_format: Callable[[str], bool] = field(repr=False)
    """True for a text that is clearly in this format."""
    read: Callable[[str | bytes, KnownTools], Reply] = field(repr=False)
    """Reads a whole reply. A model's mistake is one of its problems."""
    open_stream: Callable[..., TextStream] = field(repr=False)
    """Makes the parser of a reply in pieces, of `parse` with the tools given, the tools, and `marks_end`."""
    render: Callable[..., str] = field(repr=False)
    format: Callable[..., str] = field(repr=False)
    right_form: Callable[..., str] = field(repr=False)
    grammar: Callable[..., str] = field(repr=False)
    refuse: Callable[..., str] = field(default=unrun_text, repr=False)
    writes_programs: bool = False
    is_native: bool = False

    def __post_init__(self) -> None:
        for part in ("describe", *WRITES):
            object.__setattr__(self, part, encodable_result(getattr(self, part)))

    def recognises(self, reply: Any) -> bool:
        """True if the reply is clearly in this format."""
        text = reply.decode("utf-8", "replace") if isinstance(reply, bytes) else reply
        return isinstance(text, str) and self.is_in_format(text)

    def parse(self, reply: Any, tools: Iterable[Any] = ()) -> Reply:
        """Parses a reply into calls, a failure, an answer in plain text, or the reasons for a refusal.

        Raises:
            ConfigurationError: The host passed something other than text.
        """
        given = text_of_reply(reply, self.name)
        tagged = tag_thinking(given) if isinstance(given, str) else given
        found = self.read(tagged, as_known_tools(tools))
        text = given if isinstance(given, str) else given.decode("utf-8", "replace")
        return replace(found, message=encodable(text), ended="calls" if found.calls else "stop")

    def stream(self, tools: Iterable[Any] = (), *, marks_end: bool = False) -> TextStream:
        """Returns a parser for a reply that arrives in pieces of text or of UTF-8 bytes."""
        known = as_known_tools(tools)
        return self.open_stream(partial(self.parse, tools=known), known, marks_end=marks_end)

    def prompt(self, content: PromptContent) -> list[dict[str, Any]]:
        """Returns the message of the user: the texts of the prompt as one. Media are a ConfigurationError."""
        return encodable(text_prompt(content, self.name))

"""The interface of every protocol, and the limits that are checked before a reply is parsed."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import Any, Literal, Protocol

from toolwire.protocols.streaming import ReplyStream
from toolwire.protocols.user_prompt import PromptContent
from toolwire.vocabulary.calls import Problem, Reply, ToolCall
from toolwire.vocabulary.errors import ConfigurationError
from toolwire.vocabulary.results import ToolResult

Language = Literal["en", "zh"]
Thought = Literal["short", "full"]

REPLY_LIMIT_BYTES = 262_144
"""Maximum size of one reply in UTF-8 bytes."""

CODE_LIMIT_BYTES = 65_536
"""Maximum size of one program in UTF-8 bytes. The sandbox has the same limit."""

CALL_LIMIT = 64
"""Maximum number of calls in one reply."""

OWN_RESULT = "The reply goes on with a result of its own; calls after it were left out."
"""The problem of a reply in which the model wrote the result of a call itself: later calls depend on it."""

DEPTH_LIMIT = 64
"""Maximum nesting of arrays and tables in a reply. The parsers recurse."""

SEGMENT_LIMIT = 64
"""Maximum number of segments in one dotted key. The parsers take time quadratic in it."""

DIGIT_LIMIT = 4_300
"""Maximum number of digits of one integer. Python refuses to parse more."""


class CallingProtocol(Protocol):
    """A model's calling format. Its methods are pure: equal arguments give equal results, and they do no I/O.

    A *text* protocol describes the tools in the system prompt, and the model writes calls into its text. A *native*
    protocol uses the API's own fields for tools, calls and results. It produces plain dicts that the SDKs accept.
    """

    @property
    def name(self) -> str:
        """The name under which `get` finds the protocol."""
        ...

    @property
    def is_native(self) -> bool:
        """True if the provider's API has its own fields for tools, calls and results."""
        ...

    @property
    def writes_programs(self) -> bool:
        """True if the prompt explains programs itself. `code_execution` is then not listed among the tools."""
        ...

    @property
    def reminder(self) -> str:
        """The form of a call in few words, for a model whose prompt does not describe it.

        It must be neither a call nor an answer if a model copies it. Empty if the provider reads the calls.
        """
        ...

    def describe(
        self, tools: Iterable[Any], *, language: Language = "en", thought: Thought = "short"
    ) -> str | list[dict[str, Any]]:
        """Returns the system prompt (text protocols) or the request's `tools` (native protocols).

        Native protocols ignore `language` and `thought`.

        Raises:
            ConfigurationError: The language or the thought style is unknown, or a provider could not distinguish the
                names of two tools.
        """
        ...

    def tools_text(self, tools: Iterable[Any], *, language: Language = "en") -> str:
        """Returns the part of the system prompt that describes the tools, for a prompt that the host writes itself.

        It has no heading and no line break at its end. Without tools it says that there are none.

        Raises:
            ConfigurationError: The language is unknown, or the protocol is native and writes no prompt.
        """
        ...

    def recognises(self, reply: Any) -> bool:
        """True if the reply is clearly in this format. The check is cheap. `parse` also accepts other replies."""
        ...

    def parse(self, reply: Any, tools: Iterable[Any] = ()) -> Reply:
        """Returns the calls that a model's reply asks for.

        A model's mistake never raises; it is listed in `Reply.problems`. `Reply.message` is the model's own message for
        the conversation.

        A reply is text, UTF-8 bytes, or None for a message without content. Native protocols also accept a mapping
        or an SDK object: a whole response or its message.

        Raises:
            ConfigurationError: The host passed another kind of object, such as one from another provider's SDK.
        """
        ...

    def stream(self, tools: Iterable[Any] = (), *, marks_end: bool = ...) -> ReplyStream:
        """Returns a parser for a reply that arrives in pieces. Its final reply equals the result of `parse`.

        With `marks_end` the reply is refused until its end is marked: by the provider in a native protocol (default
        True), by the caller's `end` in a text protocol (default False).
        """
        ...

    def render(self, calls: Sequence[ToolCall]) -> str | dict[str, Any] | list[dict[str, Any]]:
        """Returns the reply with which a model would make these calls. `parse` and a request's history accept it."""
        ...

    def prompt(self, content: PromptContent) -> list[dict[str, Any]]:
        """Returns the messages of the user for one prompt: a text, or a list of texts and content blocks.

        A native protocol writes images, and sounds where its API takes them, in the provider's form.

        Raises:
            ConfigurationError: The prompt is empty, a text in it is blank, or the protocol cannot take a block.
        """
        ...

    def format(self, results: Sequence[ToolResult]) -> str | list[dict[str, Any]]:
        """Returns the results as text for the model, or as the messages that a native API expects next."""
        ...

    def refuse(self, reply: Reply) -> str | list[dict[str, Any]]:
        """Tells the model why its reply was refused, in the form of `format`. Empty if the reply was not refused."""
        ...

    def grammar(self, tools: Iterable[Any]) -> str:
        """Returns a GBNF grammar that only allows readable calls of these tools.

        Raises:
            ConfigurationError: The protocol is native; the provider constrains the output itself.
        """
        ...


class Refusal(Exception):
    """A reply cannot be read. Only `protocols` raises and catches it; no `parse` lets it through."""

    def __init__(self, message: str, *, place: str = "", text: str = "") -> None:
        super().__init__(message)
        self.problem = Problem(message=message, repaired=False, place=place)
        """The problem: the cause, the place and the correction."""
        self.text = text
        """The text for the user, if the reply holds only such text."""

    @property
    def reply(self) -> Reply:
        """The reply without calls that this refuses."""
        return Reply(text=self.text, problems=(self.problem,))


def too_many_calls() -> Refusal:
    """Returns the refusal of a reply with more than `CALL_LIMIT` calls."""
    return Refusal(f"The reply makes more than {CALL_LIMIT} calls. Make fewer at a time.")


def check_option(option: str, value: object, known: Collection[str]) -> None:
    """Checks that `value` is one of the words that an option of `describe` takes.

    Raises:
        ConfigurationError: It is another value.
    """
    if not isinstance(value, str) or value not in known:
        raise ConfigurationError(f"{option}={value!r:.80} is unknown: write one of {', '.join(map(repr, known))}")

"""The base class of the native protocols. A provider's module adds the forms of its API."""

from __future__ import annotations

import marshal
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from copy import copy, deepcopy
from dataclasses import replace
from typing import Any, TypeVar, cast

from toolwire.definition.derived import once_per_text
from toolwire.definition.from_function import tool_of
from toolwire.definition.tool import Tool
from toolwire.protocols.base import Language, Refusal, Thought
from toolwire.protocols.native.assembly import NO_CONTENT, Assembly
from toolwire.protocols.native.fields import bytes_as_text, describe_error, describe_object, field_in, read_body
from toolwire.protocols.native.heed_text import heed_text_calls
from toolwire.protocols.native.live_calls import LiveCalls
from toolwire.protocols.native.streams.native_stream import NativeStream
from toolwire.protocols.native.written import NAMED, NO_CALLS, Dialect, Reader, WrittenReply
from toolwire.protocols.outgoing import refusal_text
from toolwire.protocols.right_call import RightCall, json_form
from toolwire.protocols.tool_names import NameMap, provider_name
from toolwire.protocols.user_prompt import PromptContent, prompt_parts
from toolwire.vocabulary.blocks import ShownBlock
from toolwire.vocabulary.calls import Problem, Reply, ToolCall
from toolwire.vocabulary.errors import ConfigurationError
from toolwire.vocabulary.results import ToolResult
from toolwire.vocabulary.texts.lone_surrogates import encodable

R = TypeVar("R")


class NativeProtocol(ABC):
    """The members that all native protocols share. The objects have no state, or only the host's options."""

    name: str
    is_native = True
    reminder = ""
    writes_programs = False
    dialect: Dialect = NAMED
    reads: str
    """The objects that `parse` accepts, for an error message."""
    call_form: str
    """The place of a call in a reply, in the provider's words."""
    arguments_key = "arguments"
    """The key of a call's arguments in a right form."""
    reads_text_calls = False
    """True if a text that is nothing but calls is read as calls. Else it is refused."""

    def __eq__(self, other: object) -> bool:
        """True for a protocol of the same provider with the same options."""
        return type(self) is type(other) and vars(self) == vars(other)

    def __hash__(self) -> int:
        return hash(type(self))

    @abstractmethod
    def declare(self, tool: Tool, head: dict[str, Any]) -> dict[str, Any]:
        """Returns the declaration of one tool. `head` holds its name in the provider's form, and its description."""

    @abstractmethod
    def take_apart(self, body: Any) -> WrittenReply | None:
        """Splits a reply into its parts. None for an unknown shape."""

    @abstractmethod
    def assembly(self, live: LiveCalls) -> Assembly:
        """Returns an empty reply, to which the pieces of a streamed one are added."""

    @abstractmethod
    def message(self, body: Any, calls: Sequence[ToolCall]) -> Any:
        """Returns the assistant's message of a reply in its provider's form. A call without an id gets that of `calls`.

        `body` has JSON types and a shape that `take_apart` knows.
        """

    @abstractmethod
    def put_calls(self, message: Any, calls: Sequence[ToolCall]) -> Any:
        """Returns an assistant's message with these calls in place of its text."""

    @abstractmethod
    def render(self, calls: Sequence[ToolCall]) -> dict[str, Any] | list[dict[str, Any]]:
        """Returns the reply with which a model would make these calls, as a request's history needs it."""

    @abstractmethod
    def user_part(self, block: ShownBlock) -> dict[str, Any] | None:
        """Returns a block as a part of a message of the user. None if the API takes no such block."""

    @abstractmethod
    def format(self, results: Sequence[ToolResult]) -> list[dict[str, Any]]:
        """Returns the messages that answer the calls of these results."""

    def describe(
        self,
        tools: Iterable[Any],
        *,
        language: Language = "en",  # noqa: ARG002 - descriptions keep their authors' words
        thought: Thought = "short",  # noqa: ARG002 - as above
    ) -> list[dict[str, Any]]:
        """Returns the request's `tools`.

        Raises:
            ConfigurationError: The provider could not distinguish the names of two tools.
        """
        known = [tool_of(tool) for tool in tools]
        NameMap([tool.name for tool in known]).check()
        return copied([_declaration(tool, self) for tool in known])

    def tools_text(self, tools: Iterable[Any], *, language: Language = "en") -> str:  # noqa: ARG002 - as below
        """Not available for native protocols.

        Raises:
            ConfigurationError: Always. The request has a parameter for the tools.
        """
        raise ConfigurationError(
            f"the protocol {self.name!r} has no text of its tools: its request takes them as a parameter, "
            "describe(tools); for a prompt take 'json', 'xml' or 'attp'"
        )

    def recognises(self, reply: Any) -> bool:
        """True if the reply has the shape of this provider's replies."""
        try:
            body = read_body(reply)
        except (Refusal, ConfigurationError):
            return False
        return not isinstance(body, str) and self.take_apart(body) is not None

    def parse(self, reply: Any, tools: Iterable[Any] = ()) -> Reply:
        """Parses the calls of a reply or of the message in it, given as an object, a mapping or JSON.

        Only the first of several alternatives is read. Text without the provider's shape is the model's final answer.
        None is a message without content.

        Raises:
            ConfigurationError: The host passed something else, such as another provider's object.
        """
        if reply is None:
            return self._reply_of_text("", tools)
        try:
            body = read_body(reply)
        except Refusal as refusal:
            text = reply if isinstance(reply, str) else bytes(reply).decode("utf-8", "replace")
            return Reply(problems=(refusal.problem,), message=self.text_message(text), is_complete=True)
        found = None if isinstance(body, str) else self.read(body, Reader(tools, self.dialect))
        if found is not None:
            return found
        if isinstance(reply, str | bytes):
            return self._reply_of_text(reply if isinstance(reply, str) else reply.decode("utf-8"), tools)
        error = field_in(body, "error")
        if error is not None and isinstance(body, Mapping):
            failed = WrittenReply(ended="failed", cut=f"with an error: {describe_error(error)}")
            return replace(Reader((), self.dialect).reply(failed), message=self.text_message(""))
        raise ConfigurationError(
            f"the protocol {self.name!r} reads a {self.reads}, and was given {describe_object(reply, body)}: "
            "give what its provider answered, or take the protocol of the provider that did"
        )

    def stream(self, tools: Iterable[Any] = (), *, marks_end: bool = True) -> NativeStream:
        """Returns a parser for the chunks or events of a streamed reply.

        With `marks_end=False` the provider never says that a reply has ended, so the end of the input counts.
        """
        reader = Reader(tools, self.dialect)
        return NativeStream(self, self.assembly(LiveCalls(reader)), reader, marks_end=marks_end)

    def read(self, body: Any, reader: Reader, faults: Sequence[Problem] = ()) -> Reply | None:
        """Returns the reply that a body holds: one reading for whole and streamed replies. None for an unknown shape.

        A reply with `faults` is refused.
        """
        written = self.take_apart(body)
        if written is None:
            return None
        if faults:
            written.problems = [*faults, *(found for found in written.problems if found.message != NO_CALLS)]
        reply = heed_text_calls(reader.reply(written), reader.known, self.call_form, reads=self.reads_text_calls)
        if reply.ended in ("filter", "failed") and reply.refused_calls:
            # The turn ends here, so that no result would answer these calls.
            return replace(reply, message=self.text_message(reply.text))
        message = bytes_as_text(self.message(body, reply.refused_calls if reply.is_refused else reply.calls))
        if reply.calls and not written.calls:
            message = self.put_calls(message, reply.calls)
        try:
            return replace(reply, message=encodable(message))
        except RecursionError:
            # Only arguments of a refused call nest so deeply. They came as objects, so they are not changed.
            return replace(reply, message=message)

    def with_text_calls(self) -> NativeProtocol:
        """Returns this protocol as one that reads a text that is nothing but calls of known tools."""
        found = copy(self)
        found.reads_text_calls = True
        return found

    def _reply_of_text(self, text: str, tools: Iterable[Any]) -> Reply:
        """Returns the reply that a text without the provider's shape is."""
        said = replace(Reader((), self.dialect).reply(WrittenReply(text=text)), message=self.text_message(text))
        reply = heed_text_calls(said, tools, self.call_form, reads=self.reads_text_calls)
        return replace(reply, message=self.put_calls(self.text_message(""), reply.calls)) if reply.calls else reply

    def text_message(self, text: str) -> Any:
        """Returns an assistant's message of text alone."""
        return {"role": "assistant", "content": text or NO_CONTENT}

    def refuse(self, reply: Reply) -> list[dict[str, Any]]:
        """Returns a failed result for each refused call, or a user message if no call could be read."""
        if not reply.is_refused:
            return []
        return (
            self.format(results_for_refusal(reply)) if reply.refused_calls else [self.user_message(refusal_text(reply))]
        )

    def right_form(self, calls: Sequence[RightCall]) -> str:
        """Returns the right form of calls, each on a line: the names as the provider was given them, and JSON."""
        return "\n".join(map(self._json_form_of, calls))

    def _json_form_of(self, call: RightCall) -> str:
        arguments = {self.dialect.parameter_name(name): value for name, value in call.arguments.items()}
        return json_form({"name": provider_name(call.tool.name), self.arguments_key: arguments})

    def prompt(self, content: PromptContent) -> list[dict[str, Any]]:
        """Returns the message of the user for one prompt, with its media in the provider's form.

        Raises:
            ConfigurationError: The prompt is empty, a text in it is blank, or the API cannot take a block.
        """
        parts = prompt_parts(content, self.name, self.user_part)
        return [self.user_message(content if isinstance(content, str) else parts)]

    def user_message(self, content: str | list[dict[str, Any]]) -> dict[str, Any]:
        """Returns a message of the user: a text, or parts that `user_part` made."""
        return {"role": "user", "content": content}

    def grammar(self, tools: Iterable[Any]) -> str:  # noqa: ARG002 - no native protocol has a grammar
        """Not available for native protocols.

        Raises:
            ConfigurationError: Always. The provider reads the calls itself.
        """
        raise ConfigurationError(
            f"the protocol {self.name!r} has no grammar: its provider reads the calls itself; "
            "take 'json', 'xml' or 'attp'"
        )


@once_per_text
def _declaration(tool: Tool, protocol: NativeProtocol) -> dict[str, Any]:
    return encodable(protocol.declare(tool, _head(tool)))


def copied(value: R) -> R:
    """Returns a deep copy of the value. A value of JSON types takes a tenth of the time of `copy.deepcopy`."""
    try:
        return marshal.loads(marshal.dumps(cast("Any", value)))  # noqa: S302 - made here
    except ValueError:
        # Other types are in it, such as an `OrderedDict` of the tool's author.
        return deepcopy(value)


def _head(tool: Tool) -> dict[str, Any]:
    text = tool.whole_description
    described = {"description": text} if text else {}
    return {"name": provider_name(tool.name), **described}


def results_for_refusal(reply: Reply) -> list[ToolResult]:
    """Returns a failed result for each call of a refused reply. Providers require an answer to every call."""
    unread = [problem for problem in reply.problems if not problem.repaired]
    general = [problem for problem in unread if not problem.place.startswith("call ")]
    return [
        _refusal_result(
            call, [problem for problem in unread if problem.place.startswith(f"call {number} (")] or general
        )
        for number, call in enumerate(reply.refused_calls, 1)
    ]


def _refusal_result(call: ToolCall, problems: Sequence[Problem]) -> ToolResult:
    reasons = " ".join(problem.message for problem in problems)
    reasons = reasons or "Another call of the same reply could not be read. Make this one in your next reply."
    return ToolResult.failed("invalid_arguments", reasons, hint="Nothing of the reply was run.", call=call)

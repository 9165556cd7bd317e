"""The calls that a model asks for, and the reply that contains them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

CODE_EXECUTION = "code_execution"
"""The tool that runs a program. A program is a call of this tool, treated like any other call."""
ACTIVATE_TOOL_GROUPS = "activate_tool_groups"
"""The tool that lets a model activate groups of tools, if the owner allows it."""

SEARCH_TOOLS = "search_tools"
"""The tool that finds other tools and describes how to call them."""

READ_RESULT = "read_result"
"""The tool that reads further pages of a result too long to show at once."""

START_CALL = "start_call"
POLL_CALL = "poll_call"
CANCEL_CALL = "cancel_call"
"""The tools for calls in the background."""

ASK_USER = "ask_user"
"""The tool by which a model asks the person. The name is not reserved: nothing else relies on it."""

RESERVED_NAMES = frozenset(
    {CODE_EXECUTION, ACTIVATE_TOOL_GROUPS, SEARCH_TOOLS, READ_RESULT, START_CALL, POLL_CALL, CANCEL_CALL}
)
"""Names of toolwire's own tools. Prompts, sessions and protocols rely on their behaviour."""


def setters_of(frozen: type[Any]) -> tuple[Callable[[Any, Any], None], ...]:
    """Returns the setter of each field of a frozen dataclass with slots, in order, for its own `__init__`.

    They are faster than `object.__setattr__`, which looks up each name on every call.
    """
    fields: tuple[str, ...] = frozen.__slots__
    return tuple(vars(frozen)[name].__set__ for name in fields)


class WrittenArguments(dict[str, Any]):
    """Arguments read from text with guessed types, because the tool's schema was not known then.

    A guess writes the same text again, so a host's call converts each one by the schema of the called tool.
    """


CORE_MODULES: tuple[str, ...] = ("math", "json", "datetime", "re", "random", "statistics")
"""Global names in every program: a tool of such a name is renamed for programs."""

MORE_MODULES: tuple[str, ...] = (
    *("collections", "itertools", "functools", "operator", "string", "textwrap", "decimal", "fractions"),
    *("dataclasses", "enum", "typing", "types", "copy", "time", "calendar", "zoneinfo", "hashlib", "base64"),
    *("binascii", "heapq", "bisect", "uuid", "unicodedata", "difflib", "csv", "io", "pprint", "abc", "numbers"),
    *("cmath", "contextlib"),
)
"""Found where a program has no name of its own: a tool or variable of such a name hides the module. `io` holds
`StringIO` and `BytesIO` alone."""

ASYNCIO = "asyncio"

PROGRAM_MODULES: tuple[str, ...] = (*CORE_MODULES, *MORE_MODULES, ASYNCIO)
"""All of them. `asyncio` is the part that works over the channel."""

CLEANUP_S = 5.0
"""Seconds that cancelled calls get for their clean-up, unless the host gives another limit: enough to close connections
and delete files, and short for a person who has cancelled a turn.
"""

PROGRAM_TIME_S = 30.0
"""Seconds from a program's start to its end, tools included, unless the host gives another limit: enough for a few slow
look-ups, too short for a stuck turn. It is the same for every way to run a program.
"""


@dataclass(frozen=True, slots=True, init=False, eq=True)
class ToolCall:
    """One call that a model asked for, with the model's own arguments.

    `params` is another name for `arguments`, in the constructor and as a property.

    Attributes:
        name: The tool's name as the model wrote it.
        arguments: The raw arguments, neither validated nor converted.
        id: The id of the call. In a run it is a path, `run/2/1`; empty until it is assigned.
        parent: The id of the call that made this one: a program, or a tool through its context. Empty for a top-level
            call.
        raw_text: The text that the call was read from; empty if it did not come from text. Equality ignores it, because
            a stream has the text of a call that a whole reply has as an object.
    """

    name: str
    arguments: Mapping[str, Any]
    id: str
    parent: str
    raw_text: str = field(compare=False)

    def __init__(
        self,
        name: str,
        arguments: Mapping[str, Any] | None = None,
        *,
        params: Mapping[str, Any] | None = None,
        id: str = "",
        parent: str = "",
        raw_text: str = "",
    ) -> None:
        if arguments is None:
            arguments = params if params is not None else {}
        elif params is not None:
            raise TypeError("give `arguments` or `params`, not both: they are two names of the same value")
        _set_name(self, name)
        _set_arguments(self, arguments)
        _set_id(self, id)
        _set_parent(self, parent)
        _set_raw_text(self, raw_text)

    @property
    def params(self) -> Mapping[str, Any]:
        """The same as `arguments`."""
        return self.arguments


_set_name, _set_arguments, _set_id, _set_parent, _set_raw_text = setters_of(ToolCall)


@dataclass(frozen=True, slots=True, kw_only=True)
class Caller:
    """The caller for which a call is made. Each field is a name; empty means unknown.

    Attributes:
        principal: The person or service.
        agent: The agent that acts for the principal.
        tenant: The organisation of both.
    """

    principal: str = ""
    agent: str = ""
    tenant: str = ""


NOBODY = Caller()


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """A problem with the text of a reply.

    Attributes:
        message: A description in one sentence.
        repaired: True if it was repaired and the calls match the model's intention; False if the reply was refused.
        place: The place, as `line 3`, `line 3, column 5` or a key; empty if the problem concerns the whole reply.
        is_loss: True if the repair changed the calls that ran: the reply has another call that was left out. The model
            is told. Equality ignores it, because the message says it.
    """

    message: str
    repaired: bool
    place: str = ""
    is_loss: bool = field(default=False, compare=False)


Ended = Literal["stop", "calls", "length", "filter", "paused", "failed"]
"""Why a reply ended: the model answered; it made calls; it reached a limit of tokens; a content filter of the provider
stopped it; the provider's own tools are at work and the loop goes on; the provider failed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """A model's reply, parsed by a protocol.

    Attributes:
        calls: The calls in order. Empty if the model answers or gives up, or if the reply is refused.
        thought: The model's reasoning, if it wrote any.
        target: The purpose of the calls in the model's words.
        failure: The message with which the model says that it cannot do the task, or None.
        text: The text for the user, outside calls.
        problems: The repairs, or the reasons why the reply was refused.
        is_sequence: True if each call runs only once the one before it has succeeded: programs of several documents.
            Else the calls run in parallel.
        refused_calls: The calls of a refused reply; none of them may run. A provider that uses call ids needs an answer
            to each.
        message: The assistant's message, to be appended to the conversation before `Turn.messages`. A text protocol
            gives the text as the model wrote it. A native one gives the provider's dict, with thinking and its
            signatures; `openai-responses` gives the list of output items. It has JSON types only. Equality ignores it,
            because an SDK object and its JSON may differ in form. None if the reply was not parsed by a protocol.
        ended: Why the reply ended. None if its stream broke off, or if the protocol does not say. Equality ignores it.
        is_complete: True if the provider ended the reply, False if its stream broke off before: nothing of it runs.
            None for a text, whose format has no mark of its end. Equality ignores it.
    """

    calls: tuple[ToolCall, ...] = ()
    thought: str = ""
    target: str = ""
    failure: str | None = None
    text: str = ""
    problems: tuple[Problem, ...] = ()
    is_sequence: bool = False
    refused_calls: tuple[ToolCall, ...] = ()
    message: Any = field(default=None, compare=False, repr=False)
    ended: Ended | None = field(default=None, compare=False)
    is_complete: bool | None = field(default=None, compare=False)

    @property
    def is_refused(self) -> bool:
        """True if the text could not be read. No call may run then, and `problems` gives the reasons."""
        return any(not problem.repaired for problem in self.problems)

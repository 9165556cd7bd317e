"""What a model asked for: calls, and the reply they came in."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from toolwire.vocabulary.frozen import setters_of

CODE_EXECUTION = "code_execution"
"""The tool that runs a program; a program is a call of it like any other call."""
ACTIVATE_TOOL_GROUPS = "activate_tool_groups"
"""The tool by which a model switches groups of tools, where the owner lets it."""

SEARCH_TOOLS = "search_tools"
"""The tool that finds other tools, and says how to call them."""

READ_RESULT = "read_result"
"""The tool that reads on in a result which is too long to be shown at once."""

START_CALL = "start_call"
POLL_CALL = "poll_call"
CANCEL_CALL = "cancel_call"
"""The tools by which a model makes calls in the background."""

RESERVED_NAMES = frozenset(
    {CODE_EXECUTION, ACTIVATE_TOOL_GROUPS, SEARCH_TOOLS, READ_RESULT, START_CALL, POLL_CALL, CANCEL_CALL}
)
"""Names of toolwire's own tools: prompts, sessions and protocols rely on what these do."""


class WrittenArguments(dict[str, Any]):
    """Arguments that were read from text while the tool's schema was not known, with guessed types.

    The path reads the texts again by the schema of the tool that is called.
    """

    def read_by(self, schema: Mapping[str, Any]) -> Mapping[str, Any]:
        """The arguments as the tool's input schema says. A value that was replaced since it was read stays."""
        raise NotImplementedError


@dataclass(frozen=True, slots=True, init=False, eq=True)
class ToolCall:
    """One tool that a model asked for, with its arguments as the model gave them.

    `params` is another name for `arguments`, both here and on the object.
    """

    name: str
    """The tool's name as the model wrote it."""
    arguments: Mapping[str, Any]
    """Raw arguments: not validated, not converted."""
    id: str
    """The call's id. Inside a run it is a path, `run/2/1`; empty until one is given."""
    parent: str
    """The id of the call whose program made this one; empty at the top."""
    raw_text: str
    """The text that the call was read from; empty when there is none."""

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
            raise TypeError("give `arguments` or `params`, not both: they are one thing")
        _set_name(self, name)
        _set_arguments(self, arguments)
        _set_id(self, id)
        _set_parent(self, parent)
        _set_raw_text(self, raw_text)

    @property
    def params(self) -> Mapping[str, Any]:
        """The arguments."""
        return self.arguments


_set_name, _set_arguments, _set_id, _set_parent, _set_raw_text = setters_of(ToolCall)


@dataclass(frozen=True, slots=True, kw_only=True)
class Caller:
    """On whose behalf a call is made. Each part is a name, empty when nobody said."""

    principal: str = ""
    """The person or service."""
    agent: str = ""
    """The agent that acts for them."""
    tenant: str = ""
    """The organisation both belong to."""


NOBODY = Caller()


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """Something that was wrong with a reply's text."""

    message: str
    """What was wrong, in one sentence."""
    repaired: bool
    """True: it was put right and the calls are what the model meant. False: it is why there are no calls."""
    place: str = ""
    """Where, as `line 3`, `line 3, column 5` or a key; empty when it is about the whole reply."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """A model's reply, read by a protocol."""

    calls: tuple[ToolCall, ...] = ()
    """What it asks for, in order. Empty when it answers, fails or is refused."""
    thought: str = ""
    """What the model said it was thinking."""
    target: str = ""
    """What the model said the calls are for."""
    failure: str | None = None
    """The message of a reply by which the model says that it cannot do the task."""
    text: str = ""
    """Text meant for the user: what stands outside of calls."""
    problems: tuple[Problem, ...] = ()
    """Each repair that was made, or the reasons why the reply was refused."""

    refused_calls: tuple[ToolCall, ...] = ()
    """Calls of a refused reply, none of which may run: a provider that knows calls by id wants an answer to each."""

    @property
    def is_refused(self) -> bool:
        """True when the text could not be read: nothing may run, and `problems` says why."""
        return any(not problem.repaired for problem in self.problems)

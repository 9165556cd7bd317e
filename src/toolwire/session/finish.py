"""The end of a turn by a call: `Session(finish=...)` offers a tool by which the model ends its work."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

from toolwire.catalogue.entry import Entry
from toolwire.definition.naming import program_name
from toolwire.facade.built_in.finish_tool import final_of, finish_entry
from toolwire.facade.tools.intake import check_reserved
from toolwire.invocation.scope import Run, Scope
from toolwire.invocation.validate import Prepared, validate
from toolwire.vocabulary.blocks import TextBlock
from toolwire.vocabulary.calls import ToolCall
from toolwire.vocabulary.errors import ConfigurationError, RegistrationError, Unrepresentable
from toolwire.vocabulary.results import ToolResult
from toolwire.vocabulary.values import untag

if TYPE_CHECKING:
    from pydantic import BaseModel

RECEIVED = "It was received, and your work ends here."
"""The result of the call by which the model ended, for a model that is asked again."""


class TurnFinish:
    """The end of one turn. Calls of a program may come from several threads; the first one ends the turn."""

    def __init__(self, entry: Entry) -> None:
        self.name = entry.name
        self.call_id = ""
        self.final: Any = None
        """The value of the call that ended the turn. None until then, and if its value is null."""
        self._entry = entry
        self._lock = threading.Lock()

    def take(self, prepared: Prepared, /) -> ToolResult | None:
        """Ends the turn by this call, unless another call was first. None: its tool ends no turn."""
        call = prepared.call
        if prepared.entry.name != self.name:
            return None
        with self._lock:
            if self.call_id not in ("", call.id):
                return self._refusal(call)
            try:
                self.final, self.call_id = final_of(prepared.validated), call.id
            except Unrepresentable as error:
                message, hint = f"`answer` is not JSON: {error}.", "Give a text, a number, a list or a dict."
                return ToolResult.failed("invalid_arguments", message, hint=hint, call=call)
        return ToolResult(True, content=(TextBlock(type="text", text=RECEIVED),), call=call)

    def refusal(self, call: ToolCall, scope: Scope, /) -> ToolResult | None:
        """Returns the result of a call that does not run, because the turn has ended; None until then.

        A call that a person was asked about goes on.
        """
        is_over = self.call_id and scope.run is not None and call.id not in scope.run.asked
        return self._refusal(call) if is_over else None

    def _refusal(self, call: ToolCall) -> ToolResult:
        return ToolResult.failed(
            "interrupted",
            f"{call.name!r} was not run: the call of {self.name!r} before it had ended your work.",
            hint=f"If it is needed, make it before the call of {self.name!r}.",
            data={"is_started": False},
            call=call,
        )

    def recall(self, call: ToolCall, result: ToolResult, scope: Scope, /) -> None:
        """Ends the turn if this recorded call ended it, or a call of this recorded program.

        Raises:
            ConfigurationError: The recorded arguments do not fit the session's `finish`.
        """
        if self.call_id:
            return
        if call.name == self.name:
            found = [call] if result.success else []
        elif call.parent or scope.ledger is None:
            return
        else:
            found = [
                ToolCall(step.tool, untag(step.given), id=step.key, parent=step.parent)
                for step, inner in scope.ledger.steps_below(call.id)
                if step.tool == self.name and inner.success
            ]
        for ending in found[:1]:
            prepared = validate(ending, self._entry, scope.states)
            if isinstance(prepared, ToolResult):
                raise ConfigurationError(
                    f"finish: the run ended with a call of {self.name!r} that does not fit any more: resume it with "
                    f"the model that it was made with. {prepared.error}"
                )
            self.take(prepared)


def offer_finish(finish: str | type[BaseModel] | None, scope: Scope) -> Entry | None:
    """Adds the tool to the session's catalogue, and returns it; None if the model ends by plain text alone.

    Raises:
        ConfigurationError: `finish` is neither a name nor a pydantic model with fields, the name is taken, or a rule
            names it.
    """
    if finish is None:
        return None
    entry = finish_entry(finish)
    given = f"finish={finish!r}" if isinstance(finish, str) else f"finish={finish.__name__}"
    another = "write another name" if isinstance(finish, str) else "rename the model"
    written = program_name(entry.name)
    taken = next((one.name for one in scope.catalogue if program_name(one.name) == written), None)
    if taken is not None:
        raise ConfigurationError(f"{given}: the tools have {taken!r} already: {another}, or rename the tool")
    try:
        check_reserved(entry.name, entry.tool)
    except RegistrationError as error:
        raise ConfigurationError(
            f"{given}: the name {entry.name!r} is reserved for a tool of toolwire or for Python: {another}"
        ) from error
    if entry.name in (*scope.policy.defaults, *(rule.tool for rule in scope.policy.rules)):
        raise ConfigurationError(
            f"{given}: a rule names {entry.name!r}, but no rule applies to the call by which a model ends: {another}, "
            "or leave the rule out"
        )
    scope.catalogue.add(entry)
    return entry


def end_of(run: Run) -> TurnFinish | None:
    """Returns the end of the turn by a call; None if the model has not ended so."""
    return run.end if isinstance(run.end, TurnFinish) and run.end.call_id else None

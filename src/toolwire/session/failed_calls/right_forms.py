"""The right forms of failed calls, which the model reads after the errors: see `RightCall`."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace

from toolwire.protocols.attp.render import attp_right_form
from toolwire.protocols.base import REPLY_LIMIT_BYTES, CallingProtocol, Language, Refusal
from toolwire.protocols.foreign.meant_calls import SHOWN_LIMIT, meant_calls
from toolwire.protocols.right_call import RightCall, WritesRightForms, has_blank, load_with_blanks
from toolwire.protocols.tool_names import KnownTools
from toolwire.session.failed_calls.program_call import right_call_in_program
from toolwire.vocabulary.calls import CODE_EXECUTION, ToolCall
from toolwire.vocabulary.errors import Unrepresentable
from toolwire.vocabulary.results import ToolResult

HEADINGS: dict[Language, str] = {"en": "The right call has this form:", "zh": "正确的调用是这种形式："}


class RightForms:
    """Writes the right forms of the calls that failed in a session: of an unknown tool, or with wrong arguments.

    Everything is made anew from the reply, the failures and the present tools. Nothing is stored, and nothing runs. The
    arguments are those of the reply: those that a person edited, or that the host gave, never stand in a form.
    """

    def __init__(self, protocol: CallingProtocol, language: Language) -> None:
        self._protocol = protocol if isinstance(protocol, WritesRightForms) else None
        self._heading = HEADINGS[language]

    def lines(self, calls: Sequence[ToolCall], results: Sequence[ToolResult], tools: KnownTools) -> list[str]:
        """Returns the lines below the results of a text protocol. Empty if no call has a right form."""
        found = [right_call(call, result, tools) for call, result in zip(calls, results, strict=True)]
        direct = [right for right, call in zip(found, calls, strict=True) if right and call.name != CODE_EXECUTION]
        inner = [right for right, call in zip(found, calls, strict=True) if right and call.name == CODE_EXECUTION]
        return self._with_heading(self._form(direct), _within_limit(inner, attp_right_form))

    def lines_for_refusal(self, text: str, tools: KnownTools) -> list[str]:
        """Returns the lines below the refusal of a reply that is nothing but calls. Empty if they have no form."""
        meant = meant_calls(text, tools) if len(text) <= REPLY_LIMIT_BYTES else []
        found = [RightCall.of(tools.by_name[call.name], call.arguments) for call in meant]
        return self._with_heading(self._form([right for right in found if right]))

    def with_forms(
        self, calls: Sequence[ToolCall], results: Sequence[ToolResult], tools: KnownTools
    ) -> list[ToolResult]:
        """Returns the results of a native protocol with the right form behind the hint of each failed call."""
        return [self._with_form(call, result, tools) for call, result in zip(calls, results, strict=True)]

    def _with_form(self, call: ToolCall, result: ToolResult, tools: KnownTools) -> ToolResult:
        right = right_call(_with_copied_blanks(call), result, tools)
        if right is None or result.failure is None:
            return result
        form = _within_limit([right], attp_right_form) if call.name == CODE_EXECUTION else self._form([right])
        if not form:
            return result
        hint = "\n".join([result.failure.hint, *self._with_heading(form)])
        return replace(result, failure=replace(result.failure, hint=hint))

    def _with_heading(self, *forms: str) -> list[str]:
        found = [form for form in forms if form]
        return [self._heading, *found] if found else []

    def _form(self, calls: Sequence[RightCall]) -> str:
        return "" if self._protocol is None else _within_limit(calls, self._protocol.right_form)


def right_call(call: ToolCall, result: ToolResult, tools: KnownTools) -> RightCall | None:
    """Returns the right form of a call that failed. None if it did not fail on its tool's name or its arguments.

    `tools` are those that the caller may call: no other one is named.
    """
    if result.failure is None:
        return None
    if call.name == CODE_EXECUTION:
        return right_call_in_program(call, result, tools)
    if result.failure.kind not in ("unknown_tool", "invalid_arguments"):
        return None
    is_unknown = result.failure.kind == "unknown_tool"
    name = result.failure.data.get("nearest") if is_unknown else call.name
    tool = tools.by_name.get(name) if isinstance(name, str) and name != CODE_EXECUTION else None
    right = None if tool is None else RightCall.of(tool, call.arguments)
    if right is None or is_unknown or has_blank(right.arguments):
        return right
    # The tool's own check refused the values, and it alone knows the right ones.
    return None if right.arguments == call.arguments else right


def _with_copied_blanks(call: ToolCall) -> ToolCall:
    """Returns a native call with its arguments if they were unreadable for nothing but blanks, copied from a form."""
    if call.arguments or not call.raw_text:
        return call
    try:
        written = load_with_blanks(call.raw_text)
    except (ValueError, Refusal):
        return call
    return replace(call, arguments=written) if has_blank(written) and isinstance(written, dict) else call


def _within_limit(calls: Iterable[RightCall], write: Callable[[Sequence[RightCall]], str]) -> str:
    """Returns the forms of the first calls that fit into `SHOWN_LIMIT` characters. Empty if none fits."""
    kept, text = list[RightCall](), ""
    for call in calls:
        try:
            longer = write([*kept, call])
        except Unrepresentable:
            continue
        if len(longer) > SHOWN_LIMIT:
            break
        kept.append(call)
        text = longer
    return text

"""The lines that a conversation adds to a text protocol's messages: repeated mistakes, losses, right forms, the ending.

`Turn.text` never has them. A native protocol's messages have at most the last one, as a message of the user: the
provider fixes the form of the others. A right form is a part of the result there.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Literal, get_args

from toolwire.catalogue.entry import Entry
from toolwire.definition.naming import program_name
from toolwire.facade.built_in.kept_variables import KeptVariables
from toolwire.protocols.base import CallingProtocol, Language, check_option
from toolwire.protocols.foreign.text_parse import shows_right_form
from toolwire.protocols.native.protocol import results_for_refusal
from toolwire.protocols.outgoing import ENDINGS, FINISHES
from toolwire.protocols.tool_names import KnownTools, provider_name
from toolwire.sandbox.report import NOTHING_TO_SHOW
from toolwire.session.failed_calls.right_forms import RightForms
from toolwire.session.finish import TurnFinish
from toolwire.session.turn import Turn
from toolwire.vocabulary.calls import CODE_EXECUTION, Reply, ToolCall
from toolwire.vocabulary.errors import ConfigurationError, Unrepresentable
from toolwire.vocabulary.results import ToolResult
from toolwire.vocabulary.values import digest, plain_value

OnUnreadable = Literal["keep", "note"]

LOSSES_LIMIT = 3
"""Maximum number of losses that one message lists. More would hide the results."""

PROGRAMS_LIMIT = 8
"""Number of earlier programs whose variables are known. A model refers to its latest ones."""

BROKEN_LIMIT = 2
"""Number of broken streams in a row that are taken for a mistake of the host. One is an accident of the network."""

LEFT_OUT = "[My reply was not in the form for tools, so it is left out here.]"
"""Stands for an unreadable reply in the conversation, with `on_unreadable="note"`."""

SAME_REPLY = "This is your last reply word for word, and it cannot be read. Write a different one."
SAME_PROGRAM = "This is the program that failed before, unchanged, and it failed once more."
SAME_CALL = "{!r} was called with the same arguments as before, and it failed once more."
EARLIER = "`{}` was set by an earlier program. Each program starts empty: fetch it again or keep it in one program."
NOT_THERE = "`{}` was set by an earlier program, and is not there any more: set it in this program."
"""Stands in its place if variables are kept: it was not kept, or a program deleted it."""
THE_REST: dict[Language, str] = {
    "en": "If the request needs what was left out, send it now.",
    "zh": "如果请求还需要被略去的部分，现在就发出。",
}
"""Stands before the ending if a part of the reply did not run: without it, small models make up what was left out."""
INSTEAD_OF_TEXT: dict[Language, str] = {
    "en": "When no other tool is needed any more, call `{}` in place of an answer in plain text.",
    "zh": "不再需要别的工具时，调用 `{}`，不要直接用文字回答。",
}
"""Follows a refusal if a tool ends the work, because a refusal speaks of plain text."""

_UNDEFINED = re.compile(r"^NameError: name '(\w{1,100})' is not defined", re.MULTILINE)


class Dialogue:
    """The earlier turns of one session, as far as the next message depends on them."""

    def __init__(
        self,
        protocol: CallingProtocol,
        language: Language | None,
        on_unreadable: OnUnreadable,
        finish: Entry | None,
        variables: KeptVariables,
        has_ending_line: bool,
    ) -> None:
        """`finish` is the tool by which the model ends; None if by plain text alone. The language None is English.

        With `has_ending_line`, the results of a native protocol end with the line that says how to end, too.

        Raises:
            ConfigurationError: `on_unreadable` does not fit the protocol, or the language is unknown.
        """
        language = language or "en"
        check_option("language", language, ENDINGS)
        if on_unreadable not in get_args(OnUnreadable):
            raise ConfigurationError(f"on_unreadable={on_unreadable!r:.80} is unknown: write 'keep' or 'note'")
        if on_unreadable == "note" and protocol.is_native:
            raise ConfigurationError(
                f"on_unreadable='note': the protocol {protocol.name!r} is native, and its provider needs the model's "
                "own message: leave it out"
            )
        self._protocol = protocol
        self._ending, self._rest = ENDINGS[language], THE_REST[language]
        self._forms = RightForms(protocol, language)
        self._after_refusal: list[str] = []
        if finish is not None:
            written = _name_in_replies(finish.name, protocol)
            self._ending = FINISHES[language].format(written)
            self._after_refusal = [INSTEAD_OF_TEXT[language].format(written)]
        self._has_ending_line = has_ending_line or not protocol.is_native
        self.has_prompt = False
        """True once the host has read the session's prompt. It describes the form, so refusals do not repeat it."""
        self._has_notes = on_unreadable == "note"
        self._unread = ""
        """The last reply, if it could not be read."""
        self._failed: frozenset[str] = frozenset()
        """The calls that failed in the last turn that made any."""
        self._last_lines: tuple[str, list[str]] = ("", [])
        """The last run, and the lines that its message began with: a resumed turn has the same."""
        self._earlier_line = NOT_THERE if variables.is_on else EARLIER
        self._programs: deque[str] = deque(maxlen=PROGRAMS_LIMIT)
        self._broken = 0
        """Number of the last replies in a row whose streams broke off."""

    def count_broken(self, read: Reply) -> None:
        """Counts the streams in a row that broke off.

        Raises:
            ConfigurationError: It is the second one: the server may never mark an end.
        """
        self._broken = self._broken + 1 if read.is_complete is False else 0
        if self._broken >= BROKEN_LIMIT:
            advice = (
                "if this server never marks the end of a reply, take session.stream(marks_end=False); else the "
                "connection breaks, or not every chunk reaches `feed`"
                if self._protocol.is_native
                else "a stream with marks_end=True is complete after stream.end()"
            )
            raise ConfigurationError(f"{self._broken} streams in a row broke off before their end: {advice}")

    def without_calls(self, read: Reply, tools: KnownTools) -> Turn:
        """Returns the turn of a reply that makes no calls: an answer, a failure, or a refused reply.

        `tools` are those that its message may name.
        """
        if not read.is_refused or read.ended in ("filter", "failed"):
            return Turn.from_results(read, (), [])
        said, answer = read.message, self._refusal(read, tools)
        if isinstance(answer, str) and self._protocol.reminder and not self.has_prompt:
            answer = f"{answer}\n\n{self._protocol.reminder}"
        is_repeated = isinstance(said, str) and bool(said.strip()) and said.strip() == self._unread
        self._unread = said.strip() if isinstance(said, str) else ""
        if self._has_notes:
            read = replace(read, message=LEFT_OUT)
        before = [SAME_REPLY] if is_repeated else []
        forms = [] if shows_right_form(read) else self._forms.lines_for_refusal(self._unread, tools)
        return Turn.from_results(read, (), answer, before=before, after=[*forms, *self._after_refusal])

    def _refusal(self, read: Reply, tools: KnownTools) -> str | list[dict[str, Any]]:
        if not (self._protocol.is_native and read.refused_calls):
            return self._protocol.refuse(read)
        return self._protocol.format(self._forms.with_forms(read.refused_calls, results_for_refusal(read), tools))

    def with_results(
        self,
        run_id: str,
        read: Reply,
        results: Sequence[ToolResult],
        tools: KnownTools,
        end: TurnFinish | None = None,
    ) -> Turn:
        """Returns the turn of a run that ended. `end` is the end by a call of the model.

        `tools` are those that its message may name.
        """
        clean = all(result.success and not result.text.startswith(_NOTHING) for result in results)
        ending = [self._ending] if self._has_ending_line and clean and end is None else []
        final, has_final = None if end is None else end.final, end is not None
        shown = self._forms.with_forms(read.calls, results, tools) if self._protocol.is_native else results
        answer = self._protocol.format(shown)
        if not isinstance(answer, str):
            lines = [message for line in ending for message in self._protocol.prompt(line)]
            return Turn.from_results(read, results, [*answer, *lines], final=final, has_final=has_final, run_id=run_id)
        losses = [problem.message for problem in read.problems if problem.is_loss]
        before = [*self._remember_failures(run_id, read, results), *losses[:LOSSES_LIMIT]]
        after = [*([self._rest] if losses and ending else []), *ending]
        if not clean and end is None:
            after = self._forms.lines(read.calls, results, tools)
        return Turn.from_results(
            read, results, answer, before=before, after=after, final=final, has_final=has_final, run_id=run_id
        )

    def _remember_failures(self, run_id: str, read: Reply, results: Sequence[ToolResult]) -> list[str]:
        """Returns the lines about earlier turns, and remembers this one."""
        if run_id == self._last_lines[0]:
            return self._last_lines[1]
        lines = dict[str, None]()
        failed = set[str]()
        for call, result in zip(read.calls, results, strict=True):
            if result.failure is None or result.failure.data.get("is_started") is False:
                continue
            key = _call_key(call)
            failed.add(key)
            if key in self._failed:
                lines[SAME_PROGRAM if call.name == CODE_EXECUTION else SAME_CALL.format(call.name)] = None
            if call.name == CODE_EXECUTION:
                lines.update(dict.fromkeys(self._earlier_definition(result)))
        self._programs.extend(_code(call) for call in read.calls if call.name == CODE_EXECUTION)
        self._failed, self._unread = frozenset(failed), ""
        self._last_lines = run_id, list(lines)
        return self._last_lines[1]

    def _earlier_definition(self, result: ToolResult) -> list[str]:
        """Returns the line about a name that an earlier program defined, or nothing."""
        found = _UNDEFINED.search(result.text)
        if found is None:
            return []
        name = found[1]
        defined = re.compile(
            rf"^[ \t]*(?:[\w, ]*\b{name}\b[\w, ]*(?::[^=\n]*)?=(?!=)|(?:async )?(?:def|class|for)[ \t]+{name}\b)"
            rf"|\bas[ \t]+{name}\b",
            re.MULTILINE,
        )
        return [self._earlier_line.format(name)] if any(defined.search(program) for program in self._programs) else []


def _name_in_replies(tool: str, protocol: CallingProtocol) -> str:
    """Returns the tool's name as the model writes it."""
    if protocol.writes_programs:
        return program_name(tool)
    return provider_name(tool) if protocol.is_native else tool


_NOTHING = NOTHING_TO_SHOW.partition(".")[0]


def _call_key(call: ToolCall) -> str:
    """Returns a text that equal calls share."""
    if call.name == CODE_EXECUTION:
        return digest([call.name, _code(call).strip()])
    try:
        return digest([call.name, plain_value(dict(call.arguments))])
    except Unrepresentable:
        return call.raw_text or call.name


def _code(call: ToolCall) -> str:
    code = call.arguments.get("code")
    return code if isinstance(code, str) else ""

"""Approvers: a person at a terminal or a notebook, or a later decision. Any callable of this shape is an approver."""

from __future__ import annotations

import getpass
import shutil
import sys
import threading
import time
from abc import ABC, abstractmethod
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import ClassVar, Literal, TextIO

from toolwire.permission.approval import ApprovalRequest, Decider, Decision, DecisionRefused
from toolwire.permission.deciding import rule_for
from toolwire.permission.edits import read_edit
from toolwire.permission.notebook_input import NotebookInput, notebook_input, type_in_cell
from toolwire.permission.rendering import WIDTH, render
from toolwire.permission.rule import RuleScope
from toolwire.permission.visible import visible, visible_text
from toolwire.vocabulary.errors import Unrepresentable
from toolwire.vocabulary.machine.system import discard_typed, user_id

_ONE_AT_A_TIME = threading.Lock()
"""A process has one terminal, so only one question is open at a time."""


def later(request: ApprovalRequest) -> None:
    """Leaves the call undecided. It waits in the store until `toolwire approvals` or a program decides it."""
    del request


class ConsoleApprover:
    """Asks a person at the terminal, or in the notebook whose cell makes the call.

    Any thread may call it, and it asks one question at a time. Without a terminal or notebook, at the end of the
    input, and on Ctrl-C the call stays undecided and does not run. Keys typed before the question are discarded.
    """

    def __init__(
        self,
        *,
        input: TextIO | None = None,
        output: TextIO | None = None,
        principal: str | None = None,
        remembers: bool = True,
    ) -> None:
        """`input` and `output` default to standard input and standard error, looked up for each request.

        In a notebook they default to the input field and the output of the running cell.

        `principal` is the name of the decider; None uses the user name of this process. With `remembers`, the person
        may also choose a rule for similar calls.
        """
        self._streams = (input, output)
        self._principal = principal
        self._remembers = remembers

    def __call__(self, request: ApprovalRequest) -> Decision | None:
        """Returns the person's decision, or None if the call stays undecided."""
        terminal = _screen(*self._streams)
        if terminal is None:
            return None
        with _ONE_AT_A_TIME:
            try:
                return self._ask_person(request, terminal)
            except KeyboardInterrupt:
                with suppress(OSError):
                    terminal.say("\nnot decided")
                return None

    def _ask_person(self, request: ApprovalRequest, terminal: _Screen) -> Decision | None:
        now = time.time()
        if request.expires_at and now > request.expires_at:
            terminal.say(f"request {request.id} has expired; nothing to decide")
            return None
        try:
            shown = terminal.render_request(request, now)
        except Unrepresentable as error:
            what = "approved" if request.kind == "approval" else "answered"
            terminal.say(f"the call of request {request.id} cannot be shown, so it cannot be {what}: {error}")
            return None
        terminal.forget_typed()
        if request.kind == "question":
            terminal.say(f"\nA tool asks you.\n\n{shown}\n")
            keys = _KEYS_OF_QUESTIONS
        else:
            terminal.say(f"\nMay this call run?\n\n{shown}\n")
            keys = _KEYS if self._remembers else _KEYS_WITHOUT_MEMORY
        while True:
            terminal.say(keys)
            said = terminal.line("? ")
            if said is None:
                return None
            if request.kind == "question":
                decision = self._take_question_choice(said.lower(), request, terminal)
            else:
                decision = self._take_approval_choice(said.lower(), request, terminal)
            if decision != "again":
                return None if decision is None else self._complete_decision(request, decision, terminal.authn)

    def _take_approval_choice(
        self, said: str, request: ApprovalRequest, terminal: _Screen
    ) -> Decision | Literal["again"] | None:
        match said:
            case "y" | "yes":
                return Decision(verdict="approve")
            case "n" | "no" | "s":
                reason = terminal.line("reason for the model (may be empty): ")
                verdict = "stop_run" if said == "s" else "deny"
                return None if reason is None else Decision(verdict=verdict, reason=reason)
            case "e":
                return self._ask_edit(request, terminal)
            case "a" if self._remembers:
                return self._ask_rule(request, terminal)
            case "l":
                return None
            case _:
                return "again"

    def _take_question_choice(
        self, said: str, request: ApprovalRequest, terminal: _Screen
    ) -> Decision | Literal["again"] | None:
        match said:
            case "a":
                # Imported here: the JSON schema validator takes a tenth of a second.
                from toolwire.permission.console_question import EndOfInput, ask_at_terminal

                try:
                    return Decision(verdict="answer", answer=ask_at_terminal(request, terminal))
                except EndOfInput:
                    return None
            case "n" | "no" | "s" | "l":
                return self._take_approval_choice(said, request, terminal)
            case _:
                return "again"

    def _ask_edit(self, request: ApprovalRequest, terminal: _Screen) -> Decision | Literal["again"]:
        text = terminal.line("all arguments as JSON, on one line (empty: back): ")
        if not text:
            return "again"
        try:
            arguments = read_edit(text, request)
        except DecisionRefused as refused:
            terminal.say(str(refused))
            return "again"
        return Decision(verdict="edit", arguments=arguments)

    def _ask_rule(self, request: ApprovalRequest, terminal: _Screen) -> Decision | Literal["again"]:
        which = terminal.line("remember [1] these arguments, this run  [2] these, the session  [3] any, this run: ")
        chosen = _CHOICES.get(which or "")
        if chosen is None:
            return "again"
        scope, same_arguments = chosen
        rule = rule_for(request, scope=scope, same_arguments=same_arguments)
        terminal.say(f"remembered: {visible(str(rule))}, scope {scope}")
        return Decision(verdict="approve", remember=rule)

    def _complete_decision(self, request: ApprovalRequest, said: Decision, authn: str) -> Decision:
        principal = _user() if self._principal is None else self._principal
        return replace(
            said,
            request_id=request.id,
            by=Decider(principal=principal, channel="console", authn=authn),
            at=time.time(),
            seen_arguments_digest=request.arguments_digest,
        )


console_approver = ConsoleApprover()
"""The approver at this process's own terminal or notebook."""

_KEYS = "[y] approve  [n] deny  [e] edit  [a] approve and remember  [s] stop the run  [l] later"
_KEYS_WITHOUT_MEMORY = "[y] approve  [n] deny  [e] edit  [s] stop the run  [l] later"
_KEYS_OF_QUESTIONS = "[a] answer  [n] decline  [s] stop the run  [l] later"
_CHOICES: dict[str, tuple[RuleScope, bool]] = {"1": ("run", True), "2": ("session", True), "3": ("run", False)}


@dataclass(frozen=True, slots=True, kw_only=True)
class _Screen(ABC):
    """Where a person reads a request and types a line."""

    output: TextIO

    authn: ClassVar[str]
    """How the person proved who they are: `Decider.authn`."""

    @abstractmethod
    def line(self, question: str) -> str | None:
        """Returns the typed line without surrounding spaces; None at the end of the input."""

    @abstractmethod
    def forget_typed(self) -> None:
        """Discards typed input, so that a person cannot approve a call before seeing it."""

    def say(self, text: str) -> None:
        print(self._writable_text(text), file=self.output, flush=True)

    def render_request(self, request: ApprovalRequest, now: float) -> str:
        width = min(WIDTH, shutil.get_terminal_size((WIDTH, 24)).columns)
        text = render(request, width=width, now=now)
        return text if self._can_write(text) else render(request, width=width, now=now, ascii_only=True)

    def _writable_text(self, text: str) -> str:
        shown = visible_text(text)
        return shown if self._can_write(shown) else visible_text(text, ascii_only=True)

    def _can_write(self, text: str) -> bool:
        try:
            text.encode(self.output.encoding or "utf-8")
        except UnicodeEncodeError:
            return False
        return True


@dataclass(frozen=True, slots=True, kw_only=True)
class _Terminal(_Screen):
    authn = "terminal"
    input: TextIO

    def line(self, question: str) -> str | None:
        print(question, end="", file=self.output, flush=True)
        typed = self.input.readline()
        return typed.strip() if typed else None

    def forget_typed(self) -> None:
        discard_typed(self.input)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Notebook(_Screen):
    authn = "notebook"
    ask: NotebookInput

    def line(self, question: str) -> str | None:
        try:
            return type_in_cell(self.ask, question).strip()
        except EOFError:
            return None
        except NotImplementedError:
            self.say("not decided: this notebook takes no input")
            return None

    def forget_typed(self) -> None:
        """Does nothing, because a kernel drops earlier input itself."""


def _screen(given_input: TextIO | None, given_output: TextIO | None) -> _Screen | None:
    if given_input is None and given_output is None and (ask := notebook_input()) is not None:
        return _Notebook(output=sys.stdout, ask=ask)
    reads = sys.stdin if given_input is None else given_input
    writes = sys.stderr if given_output is None else given_output
    for stream in (reads, writes):
        # A process may have started without these streams, or may have closed them.
        if stream is None or stream.closed or not stream.isatty():  # pyright: ignore[reportUnnecessaryComparison]
            return None
    return _Terminal(input=reads, output=writes)


def _user() -> str:
    try:
        return getpass.getuser()
    except (OSError, KeyError, ImportError):
        return user_id()

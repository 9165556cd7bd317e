"""Who can be asked: a person at a terminal, or nobody for now. Any callable of the same shape will do as well."""

from __future__ import annotations

import getpass
import os
import shutil
import sys
import threading
import time
from contextlib import suppress
from dataclasses import dataclass
from typing import Literal, TextIO

from toolwire.permission.approval import ApprovalRequest, Decider, Decision, DecisionRefused
from toolwire.permission.deciding import rule_for
from toolwire.permission.edits import read_edit
from toolwire.permission.rendering import WIDTH, render
from toolwire.permission.rule import RuleScope
from toolwire.permission.visible import visible, visible_text
from toolwire.vocabulary.errors import Unrepresentable

try:
    import termios
except ImportError:  # Windows: there is no queue to empty
    termios = None

_ONE_AT_A_TIME = threading.Lock()
"""A process has one terminal: two questions at once could not be told apart."""


def later(request: ApprovalRequest) -> None:
    """Answers nothing: the call waits in the store, for `toolwire approvals` or a program to decide."""
    del request


class ConsoleApprover:
    """Asks at the terminal, one request at a time, whatever the thread.

    Without a terminal, at the end of the input and on Ctrl-C there is no answer, and the call does not run. What was
    typed before the question was shown does not count.
    """

    def __init__(
        self,
        *,
        input: TextIO | None = None,
        output: TextIO | None = None,
        principal: str | None = None,
        remembers: bool = True,
    ) -> None:
        """`input` and `output` are standard input and standard error when None, looked up when somebody is asked.

        `principal` is who decides; None: the name that the operating system knows this process by. `remembers`: the
        person may also choose to have calls like this one remembered.
        """
        self._streams = (input, output)
        self._principal = principal
        self._remembers = remembers

    def __call__(self, request: ApprovalRequest) -> Decision | None:
        """What the person said; None when nobody did."""
        terminal = _terminal(*self._streams)
        if terminal is None:
            return None
        with _ONE_AT_A_TIME:
            try:
                return self._asked(request, terminal)
            except KeyboardInterrupt:
                with suppress(OSError):
                    terminal.say("\nnot decided")
                return None

    def _asked(self, request: ApprovalRequest, terminal: _Terminal) -> Decision | None:
        now = time.time()
        if request.expires_at and now > request.expires_at:
            terminal.say(f"request {request.id} has expired; nothing to decide")
            return None
        try:
            shown = terminal.shown(request, now)
        except Unrepresentable as error:
            terminal.say(f"the call of request {request.id} cannot be shown, so it cannot be approved: {error}")
            return None
        terminal.forget_typed()
        terminal.say(f"\nMay this call run?\n\n{shown}\n")
        keys = _KEYS if self._remembers else _KEYS_WITHOUT_MEMORY
        while True:
            terminal.say(keys)
            said = terminal.line("? ")
            if said is None:
                return None
            decision = self._decision(said.lower(), request, terminal)
            if decision != "again":
                return decision

    def _decision(self, said: str, request: ApprovalRequest, terminal: _Terminal) -> Decision | Literal["again"] | None:
        match said:
            case "y" | "yes":
                return self._made(request, Decision(verdict="approve"))
            case "n" | "no":
                reason = terminal.line("reason for the model (may be empty): ")
                return None if reason is None else self._made(request, Decision(verdict="deny", reason=reason))
            case "s":
                reason = terminal.line("reason for the model (may be empty): ")
                return None if reason is None else self._made(request, Decision(verdict="stop_run", reason=reason))
            case "e":
                return self._edited(request, terminal)
            case "a" if self._remembers:
                return self._remembered(request, terminal)
            case "l":
                return None
            case _:
                return "again"

    def _edited(self, request: ApprovalRequest, terminal: _Terminal) -> Decision | Literal["again"]:
        text = terminal.line("all arguments as JSON, on one line (empty: back): ")
        if not text:
            return "again"
        try:
            arguments = read_edit(text, request)
        except DecisionRefused as refused:
            terminal.say(str(refused))
            return "again"
        return self._made(request, Decision(verdict="edit", arguments=arguments))

    def _remembered(self, request: ApprovalRequest, terminal: _Terminal) -> Decision | Literal["again"]:
        which = terminal.line("remember [1] these arguments, this run  [2] these, the session  [3] any, this run: ")
        chosen = _CHOICES.get(which or "")
        if chosen is None:
            return "again"
        scope, same_arguments = chosen
        rule = rule_for(request, scope=scope, same_arguments=same_arguments)
        terminal.say(f"remembered: {visible(str(rule))}, scope {scope}")
        return self._made(request, Decision(verdict="approve", remember=rule))

    def _made(self, request: ApprovalRequest, said: Decision) -> Decision:
        principal = _user() if self._principal is None else self._principal
        return Decision(
            verdict=said.verdict,
            arguments=said.arguments,
            reason=said.reason,
            remember=said.remember,
            request_id=request.id,
            by=Decider(principal=principal, channel="console", authn="terminal"),
            at=time.time(),
            seen_arguments_digest=request.arguments_digest,
        )


console_approver = ConsoleApprover()
"""Asks at this process's own terminal."""

_KEYS = "[y] approve  [n] deny  [e] edit  [a] approve and remember  [s] stop the run  [l] later"
_KEYS_WITHOUT_MEMORY = "[y] approve  [n] deny  [e] edit  [s] stop the run  [l] later"
_CHOICES: dict[str, tuple[RuleScope, bool]] = {"1": ("run", True), "2": ("session", True), "3": ("run", False)}


@dataclass(frozen=True, slots=True, kw_only=True)
class _Terminal:
    input: TextIO
    output: TextIO

    def say(self, text: str) -> None:
        print(self._written(text), file=self.output, flush=True)

    def line(self, question: str) -> str | None:
        """What was typed, without spaces around it; None at the end of the input."""
        print(question, end="", file=self.output, flush=True)
        typed = self.input.readline()
        return typed.strip() if typed else None

    def shown(self, request: ApprovalRequest, now: float) -> str:
        width = min(WIDTH, shutil.get_terminal_size((WIDTH, 24)).columns)
        text = render(request, width=width, now=now)
        return text if self._can_write(text) else render(request, width=width, now=now, ascii_only=True)

    def _written(self, text: str) -> str:
        shown = visible_text(text)
        return shown if self._can_write(shown) else visible_text(text, ascii_only=True)

    def _can_write(self, text: str) -> bool:
        try:
            text.encode(self.output.encoding or "utf-8")
        except UnicodeEncodeError:
            return False
        return True

    def forget_typed(self) -> None:
        """Drops what was typed ahead: nobody approves what they have not seen."""
        if termios is not None:
            with suppress(OSError, ValueError, termios.error):
                termios.tcflush(self.input.fileno(), termios.TCIFLUSH)


def _terminal(given_input: TextIO | None, given_output: TextIO | None) -> _Terminal | None:
    reads = sys.stdin if given_input is None else given_input
    writes = sys.stderr if given_output is None else given_output
    for stream in (reads, writes):
        # A process may have been started without them, or have closed them.
        if stream is None or stream.closed or not stream.isatty():  # pyright: ignore[reportUnnecessaryComparison]
            return None
    return _Terminal(input=reads, output=writes)


def _user() -> str:
    try:
        return getpass.getuser()
    except (OSError, KeyError, ImportError):
        return str(os.getuid()) if hasattr(os, "getuid") else ""

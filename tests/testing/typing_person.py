"""A terminal with a person at it who reads the screen and types."""

from __future__ import annotations

import io
import json
import re

from toolwire.permission.approvers import ConsoleApprover
from toolwire.testing.approvers import Person, Said


class Screen(io.StringIO):
    """Remembers the text that was shown."""

    def isatty(self) -> bool:
        return True


class Keyboard(io.StringIO):
    """The typed lines: from a script, or from a person who looks at the screen."""

    def isatty(self) -> bool:
        return True


class PersonAtTerminal(Keyboard):
    """Types the person's answer to the request on the screen."""

    def __init__(self, screen: Screen, person: Person) -> None:
        super().__init__()
        self._screen = screen
        self._person = person
        self._waiting: list[str] = []

    def readline(self, size: int | None = -1, /) -> str:  # pyright: ignore[reportIncompatibleMethodOverride]
        del size
        if not self._waiting:
            known = re.findall(r"^request +(a_\w+)$", self._screen.getvalue(), re.MULTILINE)[-1]
            self._waiting = _typed(self._person(known))
        return self._waiting.pop(0)


def _typed(said: Said) -> list[str]:
    if said.request_id:
        return [""]
    match said.verdict:
        case "approve":
            return ["y\n"]
        case "edit":
            return ["e\n", f"{json.dumps(said.arguments)}\n"]
        case "deny":
            return ["n\n", f"{said.reason}\n"]
        case "stop_run":
            return ["s\n", f"{said.reason}\n"]
        case "nothing":
            return ["l\n"]


def console(person: Person) -> ConsoleApprover:
    """The console approver with this person at the terminal."""
    screen = Screen()
    return ConsoleApprover(input=PersonAtTerminal(screen, person), output=screen, principal="user:42")

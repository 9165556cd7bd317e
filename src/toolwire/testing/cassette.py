"""Calls and results in a JSON file: `Recorder` writes it while tools run, `Replayer` serves it without running them."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Mapping
from difflib import SequenceMatcher
from pathlib import Path
from typing import Any, ClassVar, Self, cast

from toolwire.invocation.middleware.onion import CallNext, PreparedCall
from toolwire.invocation.owners_fault import owners_fault
from toolwire.journal.ledger.forms import read_result, result_form
from toolwire.journal.log.redaction import redact
from toolwire.testing.checks import PortFails
from toolwire.vocabulary.errors import ConfigurationError
from toolwire.vocabulary.results import ToolResult
from toolwire.vocabulary.texts.lone_surrogates import utf8_bytes, utf8_text
from toolwire.vocabulary.values import canonical

CASSETTE = "toolwire-cassette"
CASSETTE_VERSION = 1

Redact = Callable[[Any], Any]


class Recorder:
    """Middleware that records calls with their results, for a registry, a toolkit or their sessions.

    `redact` removes secrets from the recorded JSON values; by default those with a telling name or a known pattern.
    Arguments are recorded as they ran, without presets and bound values. A program is not recorded, but its calls are:
    the program runs again. Use it in a `with` block, or call `save()`.
    """

    is_colourless: ClassVar[bool] = True

    def __init__(self, path: str | Path, *, redact: Redact = redact) -> None:
        """`path` is written when recording ends; an existing file is replaced."""
        self._path = Path(path)
        self._redact = redact
        self._lock = threading.Lock()
        self._calls: list[dict[str, Any]] = []

    async def __call__(self, call: PreparedCall, call_next: CallNext, /) -> ToolResult:
        if call.prepared.entry.composite is not None:
            return await call_next(call)
        # Before the call: arguments that cannot be recorded must not run.
        arguments = self._redact(dict(call.arguments))
        result = await call_next(call)
        kept = {"tool": call.tool, "arguments": arguments, "result": self._redact(result_form(result))}
        with self._lock:
            self._calls.append(kept)
        return result

    def save(self) -> None:
        """Writes the file."""
        with self._lock:
            form = {"format": CASSETTE, "version": CASSETTE_VERSION, "calls": self._calls}
            text = json.dumps(form, ensure_ascii=False, indent=1) + "\n"
        # A lone surrogate stays as it is: two adjacent JSON escapes would be read as one character.
        self._path.write_bytes(utf8_bytes(text))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.save()


class Replayer:
    """Middleware that returns recorded results and runs no tool. Calls are validated and authorized as usual.

    A call recorded several times returns its results in order. A call that is not recorded, or not often enough, fails
    as `unavailable`, and `check()` then reports it.
    """

    is_colourless: ClassVar[bool] = True

    def __init__(self, path: str | Path, *, redact: Redact = redact) -> None:
        """`redact` must be the function used for recording, because calls are compared without their secrets.

        Raises:
            ConfigurationError: The file is missing or is not a cassette.
        """
        self._redact = redact
        self._lock = threading.Lock()
        self._path = Path(path)
        self._results: dict[str, list[Mapping[str, Any]]] = {}
        self._used: dict[str, int] = {}
        self._wrong: list[str] = []
        for kept in _read_cassette(self._path):
            self._results.setdefault(_call_line(kept["tool"], kept["arguments"]), []).append(kept["result"])

    async def __call__(self, call: PreparedCall, call_next: CallNext, /) -> ToolResult:
        if call.prepared.entry.composite is not None:
            return await call_next(call)
        wanted = _call_line(call.tool, self._redact(dict(call.arguments)))
        with self._lock:
            results, used = self._results.get(wanted, []), self._used.get(wanted, 0)
            if used < len(results):
                self._used[wanted] = used + 1
                return read_result(results[used], call.call)
            message = self._unknown(wanted, len(results))
            self._wrong.append(message)
        return owners_fault(
            "unavailable", message, for_owner="record it, with toolwire.testing.Recorder.", call=call.call
        )

    def check(self) -> None:
        """Checks that every call was recorded and every record was used.

        Raises:
            PortFails: A call was not recorded, or a record was not used. The message lists them.
        """
        with self._lock:
            unused = [
                f"{wanted} was recorded ({len(results)}) more often than it was called ({self._used.get(wanted, 0)})"
                for wanted, results in self._results.items()
                if self._used.get(wanted, 0) < len(results)
            ]
            wrong = [*self._wrong, *unused]
        if wrong:
            raise PortFails("\n".join(wrong))

    def _unknown(self, wanted: str, recorded: int) -> str:
        if recorded:
            return f"{wanted} is called more often than it was recorded in {self._path.name} ({recorded})"
        near = max(self._results, key=lambda one: SequenceMatcher(None, wanted, one).ratio(), default="")
        nearest = f"; the nearest that was is {near}" if near else ": it has no calls"
        return f"{wanted} was not recorded in {self._path.name}{nearest}"


def _call_line(tool: str, arguments: Mapping[str, Any]) -> str:
    """Returns a call as one line; equal calls give equal lines."""
    return f"{tool}({canonical(arguments)})"


def _read_cassette(path: Path) -> list[dict[str, Any]]:
    try:
        form: Any = json.loads(utf8_text(path.read_bytes()))
    except OSError as error:
        raise ConfigurationError(f"the cassette {path} cannot be read ({error.strerror}): record it first") from error
    except ValueError as error:
        raise ConfigurationError(f"{path} is not a cassette: {error}") from error
    if not isinstance(form, dict) or cast("dict[str, Any]", form).get("format") != CASSETTE:
        raise ConfigurationError(f"{path} is not a cassette: it has no format {CASSETTE!r}")
    found = cast("dict[str, Any]", form)
    if found.get("version") != CASSETTE_VERSION:
        raise ConfigurationError(
            f"the cassette {path} has version {found.get('version')!r}, and this toolwire reads {CASSETTE_VERSION}: "
            "record it again"
        )
    return found["calls"]

"""Calls and results on record in a JSON file: `Recorder` writes one while tools run, `Replayer` serves them without."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Mapping
from difflib import SequenceMatcher
from pathlib import Path
from types import TracebackType
from typing import Any, ClassVar, Self, cast

from toolwire.invocation.middleware.onion import CallNext, PreparedCall
from toolwire.invocation.owner import owners_fault
from toolwire.journal.forms import result_form, result_of
from toolwire.journal.redaction import redact
from toolwire.testing.checks import PortFails
from toolwire.vocabulary.errors import ConfigurationError
from toolwire.vocabulary.results import ToolResult
from toolwire.vocabulary.values import canonical

CASSETTE = "toolwire-cassette"
CASSETTE_VERSION = 1

Redact = Callable[[Any], Any]


class Recorder:
    """Records calls with their results. Middleware of a registry or toolkit: sessions of them are recorded too.

    Secrets are left out of the file: what looks like one or has the name of one, or whatever `redact` takes out of a
    JSON value. Arguments are those that ran, without presets and bound values. Of a program its calls are recorded,
    not the program: that runs again. Use it in a `with` block, or call `save()`.
    """

    is_colourless: ClassVar[bool] = True

    def __init__(self, path: str | Path, *, redact: Redact = redact) -> None:
        """`path` is written when recording ends; a file that is there is replaced."""
        self._path = Path(path)
        self._redact = redact
        self._lock = threading.Lock()
        self._calls: list[dict[str, Any]] = []

    async def __call__(self, call: PreparedCall, call_next: CallNext, /) -> ToolResult:
        if call.prepared.entry.composite is not None:
            return await call_next(call)
        # Before it runs: what cannot be written down is not to have run.
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
        # A lone surrogate stays itself: two JSON escapes side by side would be read as one character.
        self._path.write_bytes(text.encode("utf-8", "surrogatepass"))

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.save()


class Replayer:
    """Gives recorded results and runs no tool. Middleware, as `Recorder`; calls are validated and judged as ever.

    A call that was recorded several times gives its results in their order. One that was not, or not as often, fails
    as `unavailable`, and `check()` says so in the test.
    """

    is_colourless: ClassVar[bool] = True

    def __init__(self, path: str | Path, *, redact: Redact = redact) -> None:
        """`redact` is the one that was recorded with: calls are compared without their secrets.

        Raises:
            ConfigurationError: there is no such file, or it is no cassette.
        """
        self._redact = redact
        self._lock = threading.Lock()
        self._path = Path(path)
        self._results: dict[str, list[Mapping[str, Any]]] = {}
        self._used: dict[str, int] = {}
        self._wrong: list[str] = []
        for kept in _read(self._path):
            self._results.setdefault(_written(kept["tool"], kept["arguments"]), []).append(kept["result"])

    async def __call__(self, call: PreparedCall, call_next: CallNext, /) -> ToolResult:
        if call.prepared.entry.composite is not None:
            return await call_next(call)
        wanted = _written(call.tool, self._redact(dict(call.arguments)))
        with self._lock:
            results, used = self._results.get(wanted, []), self._used.get(wanted, 0)
            if used < len(results):
                self._used[wanted] = used + 1
                return result_of(results[used], call.call)
            message = self._unknown(wanted, len(results))
            self._wrong.append(message)
        return owners_fault(
            "unavailable", message, for_owner="record it, with toolwire.testing.Recorder.", call=call.call
        )

    def check(self) -> None:
        """Does nothing when every call was on record and every record was called for.

        Raises:
            PortFails: which were not.
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


def _written(tool: str, arguments: Mapping[str, Any]) -> str:
    """A call in one line, the same for equal calls."""
    return f"{tool}({canonical(arguments)})"


def _read(path: Path) -> list[dict[str, Any]]:
    try:
        form: Any = json.loads(path.read_bytes().decode("utf-8", "surrogatepass"))
    except OSError as error:
        raise ConfigurationError(f"the cassette {path} cannot be read ({error.strerror}): record it first") from error
    except ValueError as error:
        raise ConfigurationError(f"{path} is no cassette: {error}") from error
    if not isinstance(form, dict) or cast("dict[str, Any]", form).get("format") != CASSETTE:
        raise ConfigurationError(f"{path} is no cassette: it has no format {CASSETTE!r}")
    found = cast("dict[str, Any]", form)
    if found.get("version") != CASSETTE_VERSION:
        raise ConfigurationError(
            f"the cassette {path} has version {found.get('version')!r}, and this toolwire reads {CASSETTE_VERSION}: "
            "record it again"
        )
    return found["calls"]

"""Runs one program from its start frame to its end frame, on a stage that was set up before the fork."""

import asyncio
import builtins
import os
import re
import signal
import sys
from collections.abc import Callable
from types import CodeType, FrameType, ModuleType
from typing import Any

from .failures import mistakes, tracebacks
from .failures.scene import Scene
from .program_variables import ProgramVariables
from .values import NotData
from .wire import ChannelClosed, TooLarge, Wire, dump, encode
from .world import imports
from .world.determinism import Clock, freeze
from .world.exceptions import DOCUMENTED, ToolExceptions
from .world.help import Help
from .world.loop import AsyncShim, ProgramLoop, awaitable
from .world.replay import ReplayedCalls, number_tasks
from .world.result_marks import RESULT, Results
from .world.source import AWAITABLE, NO_EARLIER, TRAILING, CompiledProgram, prepare
from .world.stdout import ProgramOutput
from .world.stubs import ToolTable
from .world.tool_calls import CallChannel

try:
    import mmap
except ImportError:  # WebAssembly has none
    mmap = None

BALLAST_BYTES = 4 << 20
"""Address space kept in reserve, so that a program that ran out of memory can still report it."""

_END_CAP = 1 << 20


class Stage:
    """A program's environment, set up once in the zygote; each child runs one program on its copy of it."""

    def __init__(self, read: Callable[[int], bytes], write: Callable[[bytes], int]) -> None:
        self._wire = Wire(read, write)
        self._output = ProgramOutput(self._wire)
        self._exceptions = ToolExceptions()
        self._calls = CallChannel(self._wire, self._output, self._exceptions)
        self._ballast = _ballast()
        self._shim = AsyncShim(self._loop)
        self._modules = imports.modules(self._shim)
        self._importer = imports.Importer(self._modules)
        self._own: dict[str, Any] = dict(vars(builtins))
        """The program's builtins."""
        self._main = ModuleType("__main__")
        """The module of the program's classes, as dataclasses and type hints find it."""
        self._names: dict[str, Any] = vars(self._main)
        self._names |= {"__builtins__": self._own, **DOCUMENTED}
        for name, module in self._modules.items():
            (self._own if name in imports.MORE_MODULES else self._names)[name] = module
        self._help = Help(self._names)
        self._results = Results()
        self._own |= _own_builtins(self._importer, self._help) | self._results.functions
        self._tools = ToolTable([])
        self._paths: dict[str, str] = {}
        self._result_bytes = 0
        self._kept: ProgramVariables | None = None
        self._is_playing = False

    def take_signals(self) -> None:
        """Handles the signals that end a program. The zygote calls this; children inherit the handlers."""

        def handle_signal(number: int, frame: FrameType | None) -> None:
            if self._is_playing:
                self._tell_stop(number, frame)
            os._exit(0)

        for number in (signal.SIGXCPU, signal.SIGTERM):
            signal.signal(number, handle_signal)

    def play(self) -> None:
        """Waits for the start frame, runs its program, sends the outcome to the host, and waits to be ended."""
        self._is_playing = True
        try:
            _, options, source = self._wire.receive()
            unfit = self._begin_again(options["replay"]) if "replay" in options else ""
            if unfit:
                self._wire.send(encode('["unfit",', f"a program cannot be replayed here: {unfit}", _END_CAP))
                return
            self._begin(options)
            self._run(source)
            # For a running process the kernel gives the processor time as of its last tick, so the host asks for it
            # only now.
            while True:
                self._wire.receive()
        except (ChannelClosed, OSError):
            # The host has gone or needs nothing more.
            return

    def _begin_again(self, replay: dict[str, Any]) -> str:
        """Makes the program resumable; returns the obstacles, or an empty text."""
        clock = Clock(replay["started_at"])
        self._calls = ReplayedCalls(self._wire, self._output, self._exceptions, clock)
        return freeze(clock, replay["seed"])

    def _begin(self, options: dict[str, Any]) -> None:
        self._result_bytes = options["result_bytes"]
        self._importer.is_open = not options["source_checks"]
        if "modules" in options:
            self._narrow(options["modules"])
        if options["tools"]:
            self._tools = ToolTable(options["tools"], options.get("unnamed", ()))
            self._names.update(self._tools.functions(self._calls))
            # These names cannot be written in a program; among its globals, `dir()` would show them.
            self._own.update(self._tools.awaitables(self._calls))
            self._help.know(self._tools.signatures)
            self._paths = options.get("paths", {})
        if "variables" in options:
            self._kept = ProgramVariables(options["variables"], options["variables_bytes"])
        self._calls.begin(self._tools.names, options)

    def _narrow(self, allowed: list[str]) -> None:
        """Takes all other modules away."""
        for name in self._modules.keys() - set(allowed):
            del self._modules[name]
            del (self._own if name in imports.MORE_MODULES else self._names)[name]
        self._importer.allow(self._modules)

    def _run(self, source: str) -> None:
        sys.stdout = sys.stderr = self._output
        sys.modules["__main__"] = self._main
        earlier = NO_EARLIER if self._kept is None else self._kept.earlier
        # Functions of earlier programs have the lines after the program's own.
        lines = "\n".join((source, *earlier.functions))
        tracebacks.seed(lines)
        try:
            prepared = prepare(source, self._tools.names, self._paths, self._importer.names, earlier)
            self._execute(prepared)
            frame = self._result(prepared.code)
        except ChannelClosed:
            raise
        except BaseException as error:  # noqa: BLE001 - any exception of a program is its outcome
            frame = self._failure(error, lines)
        self._calls.end()
        self._output.flush()
        if self._kept is not None:
            self._wire.send(self._kept.frame(self._names, self._own))
        self._wire.send(frame)

    def _execute(self, prepared: CompiledProgram) -> None:
        for name in (*self._tools.raises, *prepared.caught):
            if name not in self._names and not hasattr(builtins, name):
                self._names[name] = self._exceptions.class_named(name)
        if self._kept is not None:
            self._kept.enter(self._names)
        try:
            # This process exists to run it; the sandbox around it keeps it harmless.
            work = eval(prepared.code, self._names)  # noqa: S307
            if prepared.is_async:
                self._shim.run(work)
        except SystemExit as request:
            if request.code not in (None, 0):
                raise

    def _result(self, code: CodeType) -> bytes:
        names = self._names
        if RESULT in names:
            return self._result_frame(names[RESULT])
        trailing = names.get(TRAILING)
        if trailing is None:
            return encode(f'["result",false,{dump(mistakes.missing_result(names, code))},', None, _END_CAP)
        try:
            return self._result_frame(trailing)
        except TypeError:
            # As at a prompt, a trailing expression that is not data is shown by its repr.
            return self._result_frame(re.sub(r" at 0x[0-9a-f]+", "", repr(trailing)))

    def _result_frame(self, value: Any) -> bytes:
        try:
            return encode(f'["result",true,{dump(self._results.notice)},', value, self._result_bytes)
        except NotData as error:
            raise TypeError(f"{RESULT} holds {error}") from None
        except TooLarge as error:
            told = f"the result is {error}. Give less of it: a part, a count or a summary"
            return encode('["failed",', ["ResultTooLarge", told, "", "", None], _END_CAP)

    def _failure(self, error: BaseException, source: str) -> bytes:
        if isinstance(error, MemoryError) and self._ballast is not None:
            self._ballast.close()
            self._ballast = None
        told = tracebacks.tell(error)
        lines = tracebacks.lines_of(source)
        frames = tracebacks.program_frames(error)
        scene = Scene(
            signatures=self._tools.signatures,
            names=self._names,
            modules=self._modules,
            frame=frames[-1] if frames else None,
            line=lines[told.line - 1] if told.line and told.line <= len(lines) else "",
            unnamed=self._tools.unnamed,
        )
        return encode(
            '["failed",', [told.type, told.message, told.traceback, mistakes.hint(error, scene), told.line], _END_CAP
        )

    def _loop(self) -> asyncio.AbstractEventLoop:
        loop = ProgramLoop(self._calls, self._unseen)
        return number_tasks(loop) if isinstance(self._calls, ReplayedCalls) else loop

    def _unseen(self, error: BaseException) -> None:
        self._output.write(f"Task exception was never retrieved\n{tracebacks.tell(error).traceback}")

    def _tell_stop(self, number: int, frame: FrameType | None) -> None:
        """Handles SIGXCPU and the host's SIGTERM: sends the program's place. The caller ends the process."""
        if not self._wire.is_writing:
            self._output.flush()
            place, line = tracebacks.tell_place(frame)
            reason = "cpu" if number == signal.SIGXCPU else "asked"
            self._wire.send(encode('["stopped",', [reason, place, line], _END_CAP))


def _ballast() -> Any:
    """Returns address space to close in need; None in WebAssembly, where all of it would be memory in use."""
    return mmap and mmap.mmap(-1, BALLAST_BYTES, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)


def _own_builtins(importer: imports.Importer, helping: Help) -> dict[str, Any]:
    """Returns the program's replacements for and additions to Python's builtins."""
    return {
        "__import__": importer,
        "input": _input,
        "help": helping,
        "exit": _exit,
        "quit": _exit,
        AWAITABLE: awaitable,
    }


def _input(_: object = "") -> str:
    """As `input()`, where nobody is there to answer."""
    raise EOFError("input() is not available in a program")


def _exit(code: object = None) -> None:
    """Ends the program, as Python's `exit()` does."""
    raise SystemExit(code)

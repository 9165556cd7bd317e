"""`ScriptedRunner`: runs scripts in place of programs, for tests without a sandbox."""

from __future__ import annotations

import asyncio
import inspect
import textwrap
import threading
from collections.abc import Awaitable, Callable, Coroutine, Generator, Mapping, Sequence
from typing import Any

from toolwire.runtime.step import step
from toolwire.sandbox.answers import Answer, AnswerError, AnswerFamily, Parked
from toolwire.sandbox.isolation import require
from toolwire.sandbox.program import Program, ProgramCall
from toolwire.sandbox.report import Isolation, IsolationLevel, ProgramResult
from toolwire.sandbox.runner import Flag
from toolwire.testing.scripted import ScriptedProgram, ScriptEnded
from toolwire.vocabulary.errors import ConfigurationError

_RAISED: Mapping[AnswerFamily, str] = {
    "denied": "ToolDenied",
    "timeout": "ToolTimeout",
    "limit": "LimitReached",
    "arguments": "InvalidArguments",
    "unavailable": "ToolUnavailable",
}
"""The exception that a program sees for each family. Any other family is a ToolError unless the tool names its own."""


class ScriptCallFailed(Exception):
    """A call of a script failed. If the script does not catch it, the program fails."""

    def __init__(self, error: AnswerError) -> None:
        super().__init__(error.message)
        own = error.type_name if error.family == "tool" else ""
        self.type_name = own or _RAISED.get(error.family, "ToolError")
        """Name of the exception that a program would see."""


class _ScriptCall:
    """A call of a script; awaiting it returns the value."""

    def __init__(self, tool: str, arguments: dict[str, Any]) -> None:
        self.tool = tool
        self.arguments = arguments

    def __await__(self) -> Generator[_ScriptCall, Answer, Any]:
        answer = yield self
        if answer.error is not None:
            raise ScriptCallFailed(answer.error)
        return answer.value


class ScriptTools:
    """The interface of a script: the tools of its program, and its output."""

    def __init__(self) -> None:
        self.output: list[str] = []
        """The printed text, piece by piece."""

    def call(self, tool: str, /, **arguments: Any) -> Awaitable[Any]:
        """Calls a tool by its registered name and returns its value. A failed call raises `ScriptCallFailed`."""
        return _ScriptCall(tool, arguments)

    def print(self, *values: object) -> None:
        """Prints as a program does."""
        self.output.append(" ".join(map(str, values)) + "\n")


Script = Callable[[ScriptTools], Coroutine[Any, Any, Any]] | Sequence[tuple[str, Mapping[str, Any]]]
"""The replacement of a program. Either `async def script(tools)`, which awaits only `tools.call(...)` and returns the
program's result, or a list of calls as (tool, arguments). The value of the last call in a list is the result.
"""


class ScriptedRunner:
    """A program runner that runs a script for each program text that it knows, and never the text itself.

    An unknown program fails as `NotScripted`. Suspending and resuming work as in the sandbox. Limits are not enforced,
    and a call without an answer blocks `run`.
    """

    def __init__(self, programs: Mapping[str, Script], *, isolation: IsolationLevel = "kernel") -> None:
        """`programs` maps each program text to a script. Surrounding white space and common indentation are ignored.

        `isolation` is the level that the runner claims. A program that needs more is refused, as on a machine with that
        level.
        """
        self._scripts = {_script_key(source): _function(script) for source, script in programs.items()}
        self._isolation = Isolation(level=isolation, report={"scripted": "nothing of a program's text is run"})
        self.programs: list[Program] = []
        """The programs that were run, in order."""

    def run(
        self, program: Program, call: Callable[[ProgramCall], Answer | Parked], /, *, cancel: Flag | None = None
    ) -> ProgramResult:
        """Runs the script for the program in this thread."""

        async def ask(made: ProgramCall) -> Answer | Parked:
            return call(made)

        return step(self._run(program, ask, cancel))

    async def run_async(
        self, program: Program, call: Callable[[ProgramCall], Awaitable[Answer | Parked]], /
    ) -> ProgramResult:
        """Like `run`, with answers that are awaited."""
        return await self._run(program, call, None)

    async def run_beside(self, program: Program, call: Callable[[ProgramCall], Answer | Parked], /) -> ProgramResult:
        """Like `run`, in another thread."""
        flag = threading.Event()
        try:
            return await asyncio.to_thread(self.run, program, call, cancel=flag)
        except asyncio.CancelledError:
            flag.set()
            raise

    async def _run(
        self, program: Program, call: Callable[[ProgramCall], Awaitable[Answer | Parked]], cancel: Flag | None
    ) -> ProgramResult:
        self.programs.append(program)
        require(program, self._isolation)
        running = ScriptedProgram(program, self._isolation)
        script, tools = self._scripts.get(_script_key(program.source)), ScriptTools()
        if script is None:
            known = f"there are scripts for {sorted(self._scripts)!r:.500}"
            message = f"no script was written for the program {program.source!r:.200}; {known}"
            return running.result(ScriptEnded("failed", type_name="NotScripted", message=message), "")
        steps = script(tools)
        try:
            ended = await _drive_script(steps, running, call, cancel)
        finally:
            steps.close()
        return running.result(ended, "".join(tools.output))


async def _drive_script(
    steps: Coroutine[Any, Any, Any],
    running: ScriptedProgram,
    call: Callable[[ProgramCall], Awaitable[Answer | Parked]],
    cancel: Flag | None,
) -> ScriptEnded:
    answer: Answer | None = None
    while cancel is None or not cancel.is_set():
        try:
            asked = steps.send(answer)
        except StopIteration as end:
            return running.finish(end.value)
        except ScriptCallFailed as failed:
            return ScriptEnded("failed", type_name=failed.type_name, message=str(failed))
        except Exception as error:  # noqa: BLE001 - like an exception that a program does not catch
            return ScriptEnded("failed", type_name=type(error).__name__, message=str(error))
        if not isinstance(asked, _ScriptCall):
            raise ConfigurationError(f"a script awaits {asked!r}: let it await nothing but tools.call(...)")
        answered = await running.answer(asked.tool, asked.arguments, call)
        if isinstance(answered, ScriptEnded):
            return answered
        answer = answered
    return ScriptEnded("cancelled")


def _script_key(source: str) -> str:
    return textwrap.dedent(source).strip()


def _function(script: Script) -> Callable[[ScriptTools], Coroutine[Any, Any, Any]]:
    if callable(script):
        if not inspect.iscoroutinefunction(script):
            raise ConfigurationError(
                f"the script {script!r} is not a coroutine function: write `async def script(tools)`"
            )
        return script
    calls = [(tool, dict(arguments)) for tool, arguments in script]

    async def make_them(tools: ScriptTools) -> Any:
        value = None
        for tool, arguments in calls:
            value = await tools.call(tool, **arguments)
        return value

    return make_them

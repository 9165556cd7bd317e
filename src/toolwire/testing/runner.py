"""`ScriptedRunner`: programs as a test has written them down, where no sandbox is to be had or none is wanted."""

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
from toolwire.testing.scripted import Ended, ScriptedProgram
from toolwire.vocabulary.errors import ConfigurationError

_RAISED: Mapping[AnswerFamily, str] = {
    "denied": "ToolDenied",
    "timeout": "ToolTimeout",
    "limit": "LimitReached",
    "arguments": "InvalidArguments",
    "unavailable": "ToolUnavailable",
}
"""The exception that each family is to a program; any other family is a ToolError unless the tool names its own."""


class CallFailed(Exception):
    """What a script gets for a call that has no value; not caught, it fails the program."""

    def __init__(self, error: AnswerError) -> None:
        super().__init__(error.message)
        own = error.type_name if error.family == "tool" else ""
        self.type_name = own or _RAISED.get(error.family, "ToolError")
        """Name of the exception that a program would see."""


class _Asked:
    """A call of a script, to be awaited: its value."""

    def __init__(self, tool: str, arguments: dict[str, Any]) -> None:
        self.tool = tool
        self.arguments = arguments

    def __await__(self) -> Generator[_Asked, Answer, Any]:
        answer = yield self
        if answer.error is not None:
            raise CallFailed(answer.error)
        return answer.value


class ScriptTools:
    """What a script has: the tools of its program, and its output."""

    def __init__(self) -> None:
        self.output: list[str] = []
        """What was printed, piece by piece."""

    def call(self, tool: str, /, **arguments: Any) -> Awaitable[Any]:
        """The value of a call, by the name that the tool is registered under; one that fails raises `CallFailed`."""
        return _Asked(tool, arguments)

    def print(self, *values: object) -> None:
        """Prints as a program does."""
        self.output.append(" ".join(map(str, values)) + "\n")


Script = Callable[[ScriptTools], Coroutine[Any, Any, Any]] | Sequence[tuple[str, Mapping[str, Any]]]
"""What a program does: `async def script(tools)`, which awaits nothing but `tools.call(...)` and returns the program's
result; or just its calls as (tool, arguments), of which the last one's value is the result."""


class ScriptedRunner:
    """A program runner that runs nothing of a program's text: it knows texts, and does what the test wrote for each.

    A program that it does not know fails as `NotScripted`. Suspending and resuming go as in the sandbox; limits are
    not kept, and a call that is not answered holds `run` up.
    """

    def __init__(self, programs: Mapping[str, Script], *, isolation: IsolationLevel = "kernel") -> None:
        """`programs` holds a script for each text; space around a text and its common indentation do not count.

        `isolation` is the level it gives itself out for; programs that ask for more are refused as on such a machine.
        """
        self._scripts = {_key(source): _function(script) for source, script in programs.items()}
        self._isolation = Isolation(level=isolation, report={"scripted": "nothing of a program's text is run"})
        self.programs: list[Program] = []
        """What was to be run, in order."""

    def run(
        self, program: Program, call: Callable[[ProgramCall], Answer | Parked], /, *, cancel: Flag | None = None
    ) -> ProgramResult:
        """Does what is written for the program, in this thread."""

        async def ask(made: ProgramCall) -> Answer | Parked:
            return call(made)

        return step(self._run(program, ask, cancel))

    async def run_async(
        self, program: Program, call: Callable[[ProgramCall], Awaitable[Answer | Parked]], /
    ) -> ProgramResult:
        """As `run`, with answers that are awaited."""
        return await self._run(program, call, None)

    async def run_beside(self, program: Program, call: Callable[[ProgramCall], Answer | Parked], /) -> ProgramResult:
        """As `run`, in another thread."""
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
        script, tools = self._scripts.get(_key(program.source)), ScriptTools()
        if script is None:
            return running.failed("NotScripted", _unknown(program.source, self._scripts), "")
        steps = script(tools)
        try:
            ended = await _driven(steps, running, call, cancel)
        finally:
            steps.close()
        return running.result(ended, "".join(tools.output))


async def _driven(
    steps: Coroutine[Any, Any, Any],
    running: ScriptedProgram,
    call: Callable[[ProgramCall], Awaitable[Answer | Parked]],
    cancel: Flag | None,
) -> Ended:
    answer: Answer | None = None
    while cancel is None or not cancel.is_set():
        try:
            asked = steps.send(answer)
        except StopIteration as end:
            return running.finished(end.value)
        except CallFailed as failed:
            return Ended("failed", type_name=failed.type_name, message=str(failed))
        except Exception as error:  # noqa: BLE001 - it stands for what a program does not catch
            return Ended("failed", type_name=type(error).__name__, message=str(error))
        if not isinstance(asked, _Asked):
            raise ConfigurationError(f"a script awaits {asked!r}: let it await nothing but tools.call(...)")
        answered = await running.answer(asked.tool, asked.arguments, call)
        if isinstance(answered, Ended):
            return answered
        answer = answered
    return Ended("cancelled")


def _key(source: str) -> str:
    return textwrap.dedent(source).strip()


def _function(script: Script) -> Callable[[ScriptTools], Coroutine[Any, Any, Any]]:
    if callable(script):
        if not inspect.iscoroutinefunction(script):
            raise ConfigurationError(f"the script {script!r} is no coroutine function: write `async def script(tools)`")
        return script
    calls = [(tool, dict(arguments)) for tool, arguments in script]

    async def make_them(tools: ScriptTools) -> Any:
        value = None
        for tool, arguments in calls:
            value = await tools.call(tool, **arguments)
        return value

    return make_them


def _unknown(source: str, known: Mapping[str, object]) -> str:
    return f"no script was written for the program {source!r:.200}; there are scripts for {sorted(known)!r:.500}"

"""Programs for a catalogue of tools: the entry `code_execution`, and running one program for its owner."""

from __future__ import annotations

import functools
import logging
from collections.abc import Callable, Generator, Iterable, Mapping
from contextlib import contextmanager
from dataclasses import replace
from importlib.util import find_spec
from typing import Any, cast

from toolwire.builtin.code_execution import CodeExecution, code_execution_tool, result_of_program
from toolwire.catalogue.catalogue import Catalogue
from toolwire.catalogue.entry import Entry
from toolwire.facade.driving import async_scope
from toolwire.facade.finding import tools_to_offer
from toolwire.facade.tools.code_execution_tool import CodeExecutionTool
from toolwire.invocation.inner.inner_calls import InnerCalls
from toolwire.invocation.invoker import invoke
from toolwire.invocation.scope import Scope
from toolwire.protocols.base import CallingProtocol
from toolwire.protocols.text_formats import JSON_TEXT
from toolwire.runtime.identity import new_id
from toolwire.runtime.runtime import Runtime
from toolwire.runtime.step import step
from toolwire.sandbox.answers import replay_engine
from toolwire.sandbox.host import Sandbox
from toolwire.sandbox.limits import Limits
from toolwire.sandbox.report import INSTALL_WASM, MinIsolation, ProgramResult
from toolwire.sandbox.runner import ProgramRunner, RunnerChoice
from toolwire.vocabulary.calls import CODE_EXECUTION, PROGRAM_MODULES, ToolCall
from toolwire.vocabulary.errors import ConfigurationError
from toolwire.vocabulary.machine import system
from toolwire.vocabulary.machine.gate import Gate
from toolwire.vocabulary.results import ToolResult

_LOG = logging.getLogger("toolwire.sandbox")


def sandbox_of(runtime: Runtime) -> Sandbox:
    """Returns the one sandbox of this runtime, started when first used."""
    return runtime.own("sandbox", Sandbox)


_STAND_INS: list[ProgramRunner] = []
"""Runners that tests and workers put in place. The latest counts in every thread: a fixture may run in another context
than its test.
"""


@contextmanager
def programs_run_by(runner: ProgramRunner) -> Generator[None]:
    """Makes `runner` run all programs of this process in place of the sandbox, until the context is left."""
    _STAND_INS.append(runner)
    try:
        yield
    finally:
        place = max(place for place, one in enumerate(_STAND_INS) if one is runner)
        del _STAND_INS[place]


def program_runner(scope: Scope) -> ProgramRunner:
    """Returns the present runner of programs: the one in place for all, the scope's own, or else this machine's.

    On Linux that is the sandbox that the kernel holds, or none: what is installed never lowers the wall there.
    Elsewhere it is WebAssembly.
    """
    if _STAND_INS:
        return _STAND_INS[-1]
    runner: RunnerChoice = scope.runner or ("kernel" if system.IS_LINUX else "wasm")
    if runner == "kernel":
        return sandbox_of(scope.runtime)
    if runner == "wasm":
        from toolwire.sandbox.wasm.wasm_runner import WasmRunner

        return scope.runtime.own("wasm", WasmRunner)
    return runner


def engine_of_programs(scope: Scope) -> str:
    """Returns where records of this scope's programs replay."""
    return getattr(program_runner(scope), "replay_engine", replay_engine)


def require_runner(runner: RunnerChoice) -> RunnerChoice:
    """Returns the runner unchanged.

    Raises:
        ConfigurationError: it is neither a `ProgramRunner` nor the name of one.
    """
    if runner in ("kernel", "wasm"):
        return runner
    lacks = [way for way in ("run", "run_async", "run_beside") if not callable(getattr(runner, way, None))]
    if isinstance(runner, str | type) or lacks:
        problem = f" has no method {lacks[0]}" if lacks and not isinstance(runner, str | type) else ""
        raise ConfigurationError(
            f"runner={runner!r:.80}{problem}: give 'kernel', 'wasm', or an object that runs programs, such as "
            "RemoteRunner(['r1:8443'], cert=..., key=..., ca=...) of toolwire.fleet"
        )
    return runner


def programs_entry(
    scope: Callable[[], Scope],
    limits: Limits,
    call_back: Callable[[str, Mapping[str, Any]], ToolResult],
    *,
    min_isolation: MinIsolation | None,
    modules: Iterable[str] | None,
    keeps_variables: bool = False,
) -> Entry:
    """Returns the tool `code_execution` for programs that may call the scope's tools.

    With `keeps_variables` the model reads that they are kept, and one program of the session runs at a time.

    The owner's own `run` of the tool uses `call_back` to enter the path. Where no program can run, the log
    `toolwire.sandbox` says so once in a process.
    """
    if not system.IS_LINUX and not _STAND_INS and scope().runner is None and find_spec("wasmtime") is None:
        _warn_without_runner()
    execution = CodeExecution(
        lambda: program_runner(scope()),
        limits=limits,
        min_isolation=min_isolation,
        modules=modules,
        keeps_variables=keeps_variables,
    )

    def run(code: str) -> ToolResult:
        return call_back(CODE_EXECUTION, {"code": code})

    tool = code_execution_tool(lambda: tools_to_offer(scope()), execution.modules, run, keeps_variables=keeps_variables)
    handle = CodeExecutionTool(tool, execution, call_back)
    gate = Gate() if keeps_variables else None
    return Entry(name=CODE_EXECUTION, tool=tool, handle=handle, composite=execution, gate=gate, rebind=_rebind_programs)


@functools.cache
def _warn_without_runner() -> None:
    _LOG.warning(
        "programs on %s run in WebAssembly, which is not installed, so each program will be refused: %s. Or let the "
        "model make calls instead: Session(tools, protocol='json') for any chat model, or the format of its provider: "
        "'openai', 'openai-responses', 'anthropic' or 'gemini'.",
        system.PLATFORM,
        INSTALL_WASM,
    )


def _rebind_programs(entry: Entry, scope: Callable[[], Scope], _: bool) -> Entry:
    """The description of `code_execution` lists the other tools of its catalogue."""
    keeps_variables = _can_keep_variables(entry)
    tool = code_execution_tool(lambda: tools_to_offer(scope()), program_modules(entry), keeps_variables=keeps_variables)
    # The catalogue that holds the entry decides whether it is disabled, and may change that later.
    return replace(entry, tool=tool, disabled=None)


def program_modules(entry: Entry | None) -> tuple[str, ...]:
    """Returns the modules that programs of this entry may use; all of them if it is not the entry of programs."""
    execution = None if entry is None else entry.composite
    return execution.modules if isinstance(execution, CodeExecution) else PROGRAM_MODULES


def program_limits(entry: Entry | None) -> Limits:
    """Returns the limits of programs of this entry; the default ones if it is not the entry of programs."""
    execution = None if entry is None else entry.composite
    return execution.limits if isinstance(execution, CodeExecution) else Limits()


def program_prompt_options(catalogue: Catalogue, protocol: CallingProtocol) -> dict[str, Any]:
    """Returns the options of a prompt that explains programs: `modules` if they are fewer than all, and
    `keeps_variables`. In other prompts, the description of `code_execution` says both.
    """
    entry = catalogue.find(CODE_EXECUTION)
    told = dict[str, Any]()
    modules = program_modules(entry)
    if protocol.writes_programs and modules != PROGRAM_MODULES:
        told["modules"] = modules
    # The prompt of json shows the form of a program in place of that description.
    if _can_keep_variables(entry) and (protocol.writes_programs or protocol is JSON_TEXT):
        told["keeps_variables"] = True
    return told


def _can_keep_variables(entry: Entry | None) -> bool:
    execution = None if entry is None else entry.composite
    return isinstance(execution, CodeExecution) and execution.keeps_variables


def run_program(
    code: str,
    scope: Scope,
    *,
    limits: Limits | None,
    source_checks: bool,
    min_isolation: MinIsolation | None,
    modules: Iterable[str] | None,
    runner: RunnerChoice | None,
) -> ProgramResult:
    """Runs a program that may call these tools, and returns how it ended. Rules apply only to the calls that it makes.

    Raises:
        ConfigurationError: an argument has another type.
        SandboxUnavailable: no sandbox as strong as `min_isolation` can be had here.
        Overloaded: too many programs are running already.
    """
    if not isinstance(cast("object", code), str):
        raise ConfigurationError(f"run_program({code!r:.80}): give the source text of a program")
    if runner is not None:
        scope = replace(scope, runner=require_runner(runner))
    execution = CodeExecution(
        lambda: program_runner(scope),
        limits=Limits() if limits is None else limits,
        source_checks=source_checks,
        min_isolation=min_isolation,
        modules=modules,
    )
    call = ToolCall(CODE_EXECUTION, {"code": code}, id=new_id("r"))
    if InnerCalls(call, scope, invoke).has_deferred_tools:
        later = async_scope(replace(scope, cleanup_s=execution.limits.cleanup_s))
        return scope.runtime.portal.run(lambda: _run_in_span(execution, code, call, later))
    return step(_run_in_span(execution, code, call, scope))


async def _run_in_span(execution: CodeExecution, code: str, call: ToolCall, scope: Scope) -> ProgramResult:
    """Runs the program. It is not a call that is judged or logged, but a tracer sees its calls inside of its span."""
    inner, tracer = InnerCalls(call, scope, invoke), scope.tracer
    if tracer is None:
        return await execution.run(code, inner)
    span = tracer.call(call, tool=CODE_EXECUTION, description="", caller=scope.caller, run_id=call.id)
    outcome = ToolResult.failed("interrupted", "the program was not run to its end", call=call)
    try:
        result = await execution.run(code, inner)
        outcome = result_of_program(result, inner)
        return result
    finally:
        span.end(outcome)

"""`toolwire run`: reads a model's reply, runs it, and prints the text for the model."""

from __future__ import annotations

import asyncio
import shlex
from collections.abc import Callable, Coroutine, Sequence
from concurrent.futures import Future
from typing import Annotated, Any, Literal, NoReturn

import typer

import toolwire
import toolwire.types
from toolwire.cli.commands.approvals_command import request_json, request_table
from toolwire.cli.commands.policy_command import honour
from toolwire.cli.completing import complete_reply_protocol
from toolwire.cli.display import count_of
from toolwire.cli.exit_codes import ExitCode, Stop, exit_codes, wrong_usage
from toolwire.cli.loading import registry_of
from toolwire.cli.options import (
    TIMEOUT_S,
    AskOption,
    JsonOption,
    LanguageOption,
    PolicyOption,
    TimeoutOption,
    ToolsOption,
)
from toolwire.cli.output import Output
from toolwire.cli.reading import read_bytes
from toolwire.cli.result_output import as_json, json_or_repr, nothing_came
from toolwire.cli.stores import StoreOption, find_run, open_store
from toolwire.cli.waiting import ConsoleAsker, terminal_asker, within

EPILOG = f"""\b
Examples:
  toolwire run reply.toml --tools tools.py
  model | toolwire run - --tools tools.py --json
  toolwire run reply.xml --tools tools.py --protocol xml
  toolwire run --resume r_1c0f --tools tools.py

A run is on record in the store (--store). What needs a person waits there:
decide with `toolwire approvals`, then --resume the run.

{exit_codes("a call or program failed, or was not allowed to run", *ExitCode)}"""

AUTO = "auto"
_DEFAULT = "attp"
_GRACE_S = 2.0
"""Seconds beyond the time limit and the clean-up of calls, for the sandbox to stop a program and keep its output."""

ReplyProtocolOption = Annotated[
    str,
    typer.Option(
        metavar="NAME", help="The format of the reply; auto detects it.", autocompletion=complete_reply_protocol
    ),
]

app = typer.Typer(rich_markup_mode=None, add_completion=False)


@app.command("run", epilog=EPILOG)
def run_reply(
    context: typer.Context,
    tools: ToolsOption,
    reply: Annotated[
        str | None, typer.Argument(metavar="REPLY|-", help="A file with the model's reply, - for standard input.")
    ] = None,
    protocol: ReplyProtocolOption = AUTO,
    policy: PolicyOption = None,
    ask: AskOption = None,
    language: LanguageOption = None,
    resume: Annotated[
        str | None,
        typer.Option("--resume", metavar="RUN", help="Continue a run that waited, instead of running a reply."),
    ] = None,
    store: StoreOption = None,
    timeout: TimeoutOption = TIMEOUT_S,
    runner: Annotated[
        Literal["kernel", "wasm"] | None, typer.Option(help="What holds programs; else what the tools say.")
    ] = None,
    json: JsonOption = False,
) -> None:
    """Run a model's reply and print the answer for the model."""
    output: Output = context.obj
    output.keep_stdout()
    if (reply is None) == (resume is None):
        raise Stop(ExitCode.WRONG_USAGE, "give a reply or --resume RUN", hint="See toolwire run --help.")
    content = b"" if reply is None else read_bytes(reply, what="the reply")
    approver = terminal_asker(ask)
    registry = registry_of(tools, approver=approver)
    honour(policy, registry, output)
    if protocol != AUTO:
        _check_protocol(protocol)
    with open_store(store, make=resume is None) as opened:
        if registry.get_execution_log() is None:
            registry.enable_logging(store=opened)
        run_id, caller = "", None
        if resume is not None:
            # The owner of the store and its key may resume any run. The run keeps its original caller.
            run_id, recognised, caller = find_run(opened, resume)
            _refuse_other_tools(opened, run_id, registry)
        else:
            recognised = _recognise_protocol(content, output) if protocol == AUTO else protocol
        name = recognised if protocol == AUTO else protocol
        with wrong_usage(toolwire.ToolwireError):
            session = toolwire.Session(
                registry,
                protocol=name,
                limits=toolwire.Limits.within(timeout),
                store=opened,
                caller=caller,
                language=language,
                runner=runner,
            )
        turn = _turn(
            lambda: session.resume(run_id) if run_id else session.turn(content),
            timeout,
            approver,
            lambda: _turn_at_timeout(session, content, timeout),
        )
    _print_turn_and_exit(turn, name, output, resume_with=_resume_options(tools, store), json=json)


def _refuse_other_tools(store: toolwire.Store, run_id: str, registry: toolwire.ToolRegistry) -> None:
    """Refuses tools without one whose call waits. With them the call would end for ever as one of an unknown tool."""
    known = {"code_execution", *registry.tool_library}
    for info in store.requests(run_id):
        # A call below another one may be of a registry that its tool has.
        request, is_open = info.request, info.state in ("pending", "approved", "answered")
        if is_open and not request.parent and not request.damaged and request.tool not in known:
            raise Stop(
                ExitCode.WRONG_USAGE,
                f"the run waits for a call of {request.tool!r}, and there is no such tool in --tools",
                hint=f"Give the tools with which it began. To end the run: toolwire runs cancel {run_id}",
            )


def _check_protocol(name: str) -> None:
    """Refuses a protocol that does not exist, before a store is made for its run."""
    with wrong_usage(toolwire.ConfigurationError):
        toolwire.protocols.get(name)


def _print_turn_and_exit(turn: toolwire.Turn, name: str, output: Output, *, resume_with: str, json: bool) -> NoReturn:
    code = _exit_code(turn)
    for problem in turn.reply.problems:
        output.say(_problem_text(problem))
    if turn.suspended is not None:
        output.say(_waiting_text(turn.suspended, resume_with, is_terminal=output.is_terminal))
    if json:
        output.result_json({"protocol": name, **_report(turn, code)})
    elif turn.suspended is None:
        output.result(turn.answer if turn.answer is not None else turn.text)
    raise typer.Exit(code)


def _recognise_protocol(content: bytes, output: Output) -> str:
    """Returns the reply's format and reports it. The default protocol then refuses a reply without a known format."""
    name = toolwire.protocols.recognise(content)
    output.say(f"protocol: {name}" if name else f"protocol: {_DEFAULT} (the format was not recognised)")
    return name or _DEFAULT


def _turn(
    make: Callable[[], Coroutine[Any, Any, toolwire.Turn]],
    timeout_s: float,
    asking: ConsoleAsker | None,
    otherwise: Callable[[], toolwire.Turn],
) -> toolwire.Turn:
    async def take(turn: Future[toolwire.Turn]) -> None:
        # Does not wait for asyncio.run to return: closing the loop may wait for a thread that a tool keeps busy.
        turn.set_result(await make())

    try:
        longest_s = timeout_s + toolwire.Limits.within(timeout_s).cleanup_s + _GRACE_S
        return within(longest_s, lambda turn: asyncio.run(take(turn)), asking=asking)
    except TimeoutError:
        return otherwise()
    except toolwire.SandboxUnavailable as error:
        raise Stop(ExitCode.FAILED, str(error)) from error


def _turn_at_timeout(session: toolwire.Session, content: bytes, timeout_s: float) -> toolwire.Turn:
    """Returns a turn in place of one that the session did not finish in time."""
    reply = session.protocol.parse(content)
    results = tuple(nothing_came(repr(call.name), timeout_s, call=call) for call in reply.calls)
    return toolwire.Turn.from_results(reply, results, session.protocol.format(results))


def _exit_code(turn: toolwire.Turn) -> ExitCode:
    if turn.suspended is not None:
        return ExitCode.SUSPENDED
    if turn.reply.is_refused:
        return ExitCode.REFUSED
    if turn.reply.failure is not None:
        return ExitCode.DECLINED
    return ExitCode.DONE if all(result.success for result in turn.results) else ExitCode.FAILED


def _problem_text(problem: toolwire.types.Problem) -> str:
    place = f"{problem.place}: " if problem.place else ""
    return f"{'repaired' if problem.repaired else 'refused'}: {place}{problem.message}"


def _report(turn: toolwire.Turn, code: ExitCode) -> dict[str, Any]:
    return {
        "status": code.name.lower(),
        "thought": turn.reply.thought,
        "target": turn.reply.target,
        "message": turn.reply.failure,
        "answer": turn.answer,
        "problems": [
            {"message": problem.message, "repaired": problem.repaired, "place": problem.place}
            for problem in turn.reply.problems
        ],
        "results": [_result(result) for result in turn.results],
        "text": turn.text,
        "suspended": None if turn.suspended is None else _waiting_json(turn.suspended),
    }


def _result(result: toolwire.ToolResult) -> dict[str, Any]:
    program = result.metadata.get("program")
    found = as_json(result)
    return {**found, "program": _program(program)} if isinstance(program, toolwire.ProgramResult) else found


def _program(program: toolwire.ProgramResult) -> dict[str, Any]:
    return {
        "status": program.status,
        "isolation": program.isolation.level,
        "duration_s": round(program.duration_s, 6),
        "calls": [
            {
                "tool": call.tool,
                "arguments": json_or_repr(call.arguments),
                "status": call.status,
                "duration_ms": round(call.duration_ms, 3),
            }
            for call in program.calls
        ],
    }


def _resume_options(tools: Sequence[str], store: str | None) -> str:
    """Returns the command line options that resume the run."""
    named = [part for tool in tools for part in ("--tools", tool)]
    return shlex.join([*named, *([] if store is None else ["--store", store])])


def _waiting_text(run: toolwire.types.SuspendedRun, resume_with: str, *, is_terminal: bool) -> str:
    """Describes the pending requests and the commands that decide them."""
    count, first = len(run.pending), run.pending[0]
    how = "answer or deny" if first.kind == "question" else "approve, deny or edit"
    return (
        f"run {run.run_id} waits for {count_of(count, 'decision')}:\n\n"
        f"{request_table(run.pending, is_terminal=is_terminal)}\n\n"
        f"Decide:  toolwire approvals show {first.id[:10]}, then {how}\n"
        f"Go on:   toolwire run --resume {run.run_id} {resume_with}"
    )


def _waiting_json(run: toolwire.types.SuspendedRun) -> dict[str, Any]:
    """Returns the same facts as JSON types."""
    return {"run_id": run.run_id, "rev": run.rev, "pending": [request_json(request) for request in run.pending]}

"""`toolwire approvals`: lists calls and questions that wait for a person, and records decisions."""

from __future__ import annotations

import getpass
import json as json_text
import shutil
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, fields, replace
from typing import Annotated, Any, Literal

import typer
from rich.table import Table

import toolwire
from toolwire.cli.display import add_id_column, add_row, cut_cell, moment, one_line, seconds_of, span, table_text, whole
from toolwire.cli.exit_codes import ExitCode, Stop, exit_codes
from toolwire.cli.options import JsonOption
from toolwire.cli.output import Output
from toolwire.cli.reading import read_text
from toolwire.cli.result_output import json_or_repr
from toolwire.cli.stores import StoreOption, find_run, open_store, read_pages
from toolwire.cli.typed_arguments import read_pairs, read_value

EPILOG = f"""\b
Examples:
  toolwire approvals list
  toolwire approvals show a_1c0f
  toolwire approvals approve a_1c0f
  toolwire approvals approve a_1c --remember run --for 8h
  toolwire approvals deny a_1c0f --reason "4 at most"
  toolwire approvals edit a_1c --arguments '{{"n": 4}}'
  toolwire approvals answer a_2b7d --value 3
  toolwire approvals answer a_2b7d guests=4 name=Ada

An id may be shortened as long as it means one request. The first decision
counts. A run that waits goes on with `toolwire run --resume RUN`.

{exit_codes("it was decided before, or cannot be decided")}"""

SHORT_ID = 10
"""Minimum length of an id in a list: `a_` and 8 digits. Ids are longer if two begin alike."""

app = typer.Typer(no_args_is_help=True, add_completion=False, rich_markup_mode=None, epilog=EPILOG)

IdArgument = Annotated[str, typer.Argument(metavar="ID", help="The request, or the beginning of its id.")]


@app.callback(epilog=EPILOG)
def _approvals() -> None:  # pyright: ignore[reportUnusedFunction] - typer keeps it
    """See and decide the calls and questions that wait."""


@app.command("list")
def list_requests(
    context: typer.Context,
    run: Annotated[str | None, typer.Option("--run", metavar="RUN", help="All requests of this run only.")] = None,
    tool: Annotated[str | None, typer.Option("--tool", metavar="NAME", help="Calls of this tool only.")] = None,
    limit: Annotated[
        int | None,
        typer.Option("--limit", metavar="N", min=1, help="Print at most N requests. The default is 100."),
    ] = None,
    after: Annotated[
        str | None, typer.Option("--after", metavar="CURSOR", help="Go on where a list ended that was cut.")
    ] = None,
    store: StoreOption = None,
    json: JsonOption = False,
) -> None:
    """Print the requests that wait for a person, oldest first."""
    output: Output = context.obj
    with open_store(store) as opened:
        run_id = None if run is None else find_run(opened, run)[0]
        requests = opened.pending(run_id, limit=limit, after=after, tool=tool)
        waiting = opened.waiting().count if requests.more else 0
    if json:
        output.result_json([request_json(request) for request in requests])
    elif requests:
        output.result(request_table(requests, is_terminal=output.is_terminal))
    else:
        is_part = any((run, tool, after))
        output.say("no such request waits for a person" if is_part else "nothing waits for a person")
    if requests.more:
        output.say(f"{len(requests)} of the requests; {waiting} wait in all. The next ones: --after {requests.cursor}")


@app.command("show")
def show(context: typer.Context, id: IdArgument, store: StoreOption = None, json: JsonOption = False) -> None:
    """Print one request with its whole call and decision."""
    output: Output = context.obj
    with open_store(store) as opened:
        request, decision = _find_request(opened, id)
    if json:
        output.result_json(
            {**request_json(request), "decision": None if decision is None else _decision_json(decision)}
        )
        return
    output.result(_request_text(request))
    if decision is not None:
        output.result(f"decided    {_decision_text(decision)}")


@app.command("approve")
def approve(
    context: typer.Context,
    id: IdArgument,
    remember: Annotated[
        Literal["run", "session", "workspace"] | None,
        typer.Option(
            help="Let later calls like this one run without asking, for the same principal and tenant: in this run, "
            "its session, or for good."
        ),
    ] = None,
    any_arguments: Annotated[
        bool, typer.Option("--any-arguments", help="With --remember: calls with other arguments too.")
    ] = False,
    how_long: Annotated[
        str | None,
        typer.Option("--for", metavar="TIME", help="With --remember: for how long, such as 30min, 8h or 7d."),
    ] = None,
    store: StoreOption = None,
) -> None:
    """Let the call run, as `show` shows it."""
    if remember is None and (any_arguments or how_long is not None):
        raise Stop(ExitCode.WRONG_USAGE, "--any-arguments and --for say what is remembered", hint="Add --remember.")
    kept_s = None if how_long is None else seconds_of(how_long)
    if how_long is not None and not kept_s:
        raise Stop(ExitCode.WRONG_USAGE, f"{how_long!r} is not a length of time", hint="Write 30min, 8h or 7d.")

    def make_approval(request: toolwire.ApprovalRequest) -> toolwire.Decision:
        from toolwire.approvals import rule_for

        if remember is None:
            return toolwire.Decision(verdict="approve")
        rule = rule_for(request, scope=remember, same_arguments=not any_arguments)
        return toolwire.Decision(
            verdict="approve",
            remember=rule if kept_s is None else replace(rule, expires_at=time.time() + kept_s),
        )

    _decide(context.obj, store, id, make_approval)


@app.command("deny")
def deny(
    context: typer.Context,
    id: IdArgument,
    reason: Annotated[str, typer.Option("--reason", metavar="TEXT", help="The reason that the model reads.")] = "",
    stop_run: Annotated[bool, typer.Option("--stop-run", help="Stop the whole run.")] = False,
    store: StoreOption = None,
) -> None:
    """Refuse a call, or decline to answer a question."""
    verdict = "stop_run" if stop_run else "deny"
    _decide(context.obj, store, id, lambda _: toolwire.Decision(verdict=verdict, reason=reason))


@app.command("edit")
def edit(
    context: typer.Context,
    id: IdArgument,
    arguments: Annotated[
        str,
        typer.Option("--arguments", metavar="JSON|FILE|-", help="All arguments of the edited call, as a JSON object."),
    ],
    store: StoreOption = None,
) -> None:
    """Let the call run with other arguments."""
    from toolwire.approvals import read_edit

    text = arguments if arguments.lstrip().startswith("{") else read_text(arguments, what="the arguments")
    _decide(
        context.obj, store, id, lambda request: toolwire.Decision(verdict="edit", arguments=read_edit(text, request))
    )


@app.command("answer")
def answer_question(
    context: typer.Context,
    id: IdArgument,
    fields: Annotated[
        list[str] | None, typer.Argument(metavar="KEY=VALUE", help="The fields of an answer that is an object.")
    ] = None,
    value: Annotated[
        str | None, typer.Option("--value", metavar="VALUE", help="The whole answer: a text as it is, or JSON.")
    ] = None,
    store: StoreOption = None,
) -> None:
    """Answer the question of a tool, which `show` shows. It lets nothing run. To decline, use `deny`."""
    if (value is None) == (not fields):
        raise Stop(
            ExitCode.WRONG_USAGE, "the answer is missing or given twice", hint="Give --value VALUE or KEY=VALUE fields."
        )

    def make_answer(request: toolwire.ApprovalRequest) -> toolwire.Decision:
        schema = request.answer_schema
        given = read_pairs(fields or (), schema) if value is None else read_value(value, schema, schema)
        return toolwire.Decision(verdict="answer", answer=given)

    _decide(context.obj, store, id, make_answer)


def request_table(requests: Sequence[toolwire.ApprovalRequest], *, is_terminal: bool) -> str:
    """Returns a table of pending requests with shortened arguments. Ids are whole; a long tool name is folded."""
    table, now = Table(), time.time()
    for name in ("REQUEST", "TOOL", "ASKED", "LEFT"):
        table.add_column(name, no_wrap=name != "TOOL", overflow="fold")
    add_id_column(table, "RUN", [request.run_id for request in requests])
    table.add_column("ARGUMENTS")
    length = _short_length([request.id for request in requests])
    for request in requests:
        left = span(request.expires_at - now) if request.expires_at else "no end"
        asked = f"{span(now - request.created_at)} ago"
        run, arguments = whole(request.run_id), cut_cell(_brief(request))
        add_row(table, request.id[:length], request.tool, asked, left, run, arguments)
    return table_text(table, is_terminal=is_terminal)


def request_json(request: toolwire.ApprovalRequest) -> dict[str, Any]:
    """Returns all fields of a request as JSON types."""
    found = {
        field.name: json_or_repr(getattr(request, field.name)) for field in fields(request) if field.name != "caller"
    }
    return {**found, "caller": asdict(request.caller)}


def _find_request(store: toolwire.Store, id: str) -> tuple[toolwire.ApprovalRequest, toolwire.Decision | None]:
    """Returns the request with this id, or with an id that begins like this."""
    waiting = _find_waiting(store, id)
    if len(waiting) == 1:
        return waiting[0], None
    if len(waiting) > 1:
        begins = ", ".join(request.id for request in waiting)
        raise Stop(ExitCode.WRONG_USAGE, f"{id!r} may be {len(waiting)} requests: {begins}", hint="Give more of it.")
    try:
        return store.request(id)
    except toolwire.DecisionRefused as refused:
        raise Stop(
            ExitCode.WRONG_USAGE,
            f"no waiting request begins with {id!r}",
            hint="See `toolwire approvals list`; of one that was decided or has expired give the whole id.",
        ) from refused


def _find_waiting(store: toolwire.Store, id: str) -> list[toolwire.ApprovalRequest]:
    """Returns the requests that wait and have ids that begin like this."""
    return [request for request in read_pages(store.pending) if request.id.startswith((id, f"a_{id}"))]


def _decide(
    output: Output, named: str | None, id: str, made: Callable[[toolwire.ApprovalRequest], toolwire.Decision]
) -> None:
    with open_store(named) as store:
        request, decided = _find_request(store, id)
        if decided is not None:
            raise _too_late(request, decided)
        shown = _request_text(request)
        try:
            taken = store.decide(request.id, _complete_decision(made(request), request))
        except toolwire.DecisionRefused as refused:
            if refused.decided is not None:
                raise _too_late(request, refused.decided) from refused
            raise Stop(ExitCode.FAILED, str(refused), hint="Nothing was decided.") from refused
    output.say(shown)
    output.result(f"{request.id}: {_decision_text(taken)}")
    if taken.remember is not None:
        output.result(f"remembered: {_rule_text(taken.remember)}")
    output.say(f"Continue the run: toolwire run --resume {request.run_id} --tools ...")
    output.say("A client of `toolwire serve` continues it with the same call, or with its task.")


def _complete_decision(said: toolwire.Decision, request: toolwire.ApprovalRequest) -> toolwire.Decision:
    from toolwire.approvals import Decider

    return replace(
        said,
        request_id=request.id,
        by=Decider(principal=getpass.getuser(), channel="cli", authn="os-user"),
        at=time.time(),
        seen_arguments_digest=request.arguments_digest,
    )


def _too_late(request: toolwire.ApprovalRequest, decided: toolwire.Decision) -> Stop:
    return Stop(
        ExitCode.FAILED,
        f"{request.id} was decided before: {_decision_text(decided)}",
        hint="The first decision counts.",
    )


def _decision_text(decision: toolwire.Decision) -> str:
    done = {
        "approve": "approved",
        "edit": "approved with other arguments",
        "deny": "denied",
        "stop_run": "run stopped",
        "answer": "answered",
    }
    by = decision.by
    who = f" by {by.principal}" if by.principal else ""
    through = f" through {by.channel}" if by.channel else ""
    reason = f": {decision.reason}" if decision.reason else ""
    return one_line(f"{done[decision.verdict]}{who}{through}, {moment(decision.at)}{reason}")


def _rule_text(rule: toolwire.Rule) -> str:
    until = f", until {moment(rule.expires_at)}" if isinstance(rule.expires_at, float) else ""
    whose = f", for {rule.principal}" if rule.principal else ""
    tenant = f" of {rule.tenant}" if rule.tenant else ""
    return one_line(f"{rule}, scope {rule.scope}{whose}{tenant}{until}")


def _request_text(request: toolwire.ApprovalRequest) -> str:
    from toolwire.approvals import render_request

    try:
        return render_request(request, width=min(100, shutil.get_terminal_size((100, 24)).columns), now=time.time())
    except toolwire.ToolwireError as error:
        raise Stop(ExitCode.FAILED, f"{request.id} cannot be shown, so it cannot be approved: {error}") from error


def _decision_json(decision: toolwire.Decision) -> dict[str, Any]:
    return {
        "verdict": decision.verdict,
        "arguments": json_or_repr(decision.arguments),
        "answer": json_or_repr(decision.answer),
        "reason": decision.reason,
        "remember": None if decision.remember is None else _rule_text(decision.remember),
        "by": asdict(decision.by),
        "at": decision.at,
    }


def _brief(request: toolwire.ApprovalRequest) -> str:
    if request.damaged:
        return f"damaged, cannot be decided: {request.damaged}"
    if request.kind == "question":
        return f"asks {json_text.dumps(request.question, ensure_ascii=False)}"
    return json_text.dumps(json_or_repr(request.arguments), ensure_ascii=False)


def _short_length(ids: Sequence[str]) -> int:
    length = SHORT_ID
    while len({known[:length] for known in ids}) < len(set(ids)):
        length += 2
    return length

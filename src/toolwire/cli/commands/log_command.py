"""`toolwire log`: prints the calls, approval requests and decisions that the store has recorded."""

from __future__ import annotations

import datetime
import time
from collections.abc import Callable, Sequence
from dataclasses import fields
from typing import TYPE_CHECKING, Annotated, Any

import typer

from toolwire.cli.commands.approvals_command import SHORT_ID
from toolwire.cli.completing import complete_logged_tool, complete_status, log_statuses
from toolwire.cli.display import count_of, moment, one_line, seconds_of, whole_rows
from toolwire.cli.exit_codes import ExitCode, Stop, exit_codes
from toolwire.cli.options import JsonOption
from toolwire.cli.output import Output
from toolwire.cli.result_output import json_or_repr
from toolwire.cli.stores import StoreOption, find_logged_run, open_store

if TYPE_CHECKING:
    from toolwire.log import LogRow

EPILOG = f"""\b
Examples:
  toolwire log
  toolwire log --follow --json
  toolwire log --tool pay --status denied --since 2h
  toolwire log --principal ada --agent support
  toolwire log tree r_1c0f
  toolwire log verify

{exit_codes("`verify` found that the log was changed")}"""

ROWS = 50
"""Default number of rows, about two screens."""

PROGRESS_S = 1.0
"""Seconds between two lines that say how far a check is. One that is shorter says nothing."""

app = typer.Typer(rich_markup_mode=None, add_completion=False, invoke_without_command=True, epilog=EPILOG)


def _since(text: str | None) -> float | None:
    """Converts a time, or a duration before now, to seconds since the epoch."""
    if text is None:
        return None
    if (past_s := seconds_of(text)) is not None:
        return time.time() - past_s
    try:
        found = datetime.datetime.fromisoformat(text)
    except ValueError as error:
        message = f"{text!r} is not a time; write 30min, 2h, 7d or 2026-11-22T14:00"
        raise typer.BadParameter(message, param_hint="--since") from error
    return (found if found.tzinfo else found.replace(tzinfo=datetime.UTC)).timestamp()


@app.callback(epilog=EPILOG)
def show_log(
    context: typer.Context,
    follow: Annotated[bool, typer.Option("--follow", help="Keep printing new rows until Ctrl-C.")] = False,
    tool: Annotated[
        str | None, typer.Option(metavar="NAME", help="Rows about this tool.", autocompletion=complete_logged_tool)
    ] = None,
    status: Annotated[
        str | None,
        typer.Option(metavar="STATUS", help="success, denied, asked, approve, ...", autocompletion=complete_status),
    ] = None,
    principal: Annotated[
        str | None, typer.Option(metavar="NAME", help="Rows of calls for this person or service.")
    ] = None,
    agent: Annotated[str | None, typer.Option(metavar="NAME", help="Rows of calls by this agent.")] = None,
    run: Annotated[str | None, typer.Option(metavar="RUN", help="Rows of this run.")] = None,
    since: Annotated[str | None, typer.Option(metavar="TIME", help="Rows since then: 2h, 7d, or a time.")] = None,
    limit: Annotated[int, typer.Option(metavar="N", min=1, help="At most this many rows, the latest.")] = ROWS,
    store: StoreOption = None,
    json: JsonOption = False,
) -> None:
    """Print calls and decisions, oldest first."""
    if context.invoked_subcommand is not None:
        return
    from toolwire.log import LogFilter

    output: Output = context.obj
    since_s = _since(since)
    if status is not None and status not in log_statuses():
        known = ", ".join(log_statuses())
        raise Stop(ExitCode.WRONG_USAGE, f"a log has no status {status!r}", hint=f"Write one of {known}.")
    with open_store(store) as opened:
        run_id = None if run is None else find_logged_run(opened, run)
        wanted = LogFilter(tool=tool, status=status, principal=principal, agent=agent, run_id=run_id, since=since_s)
        rows = opened.log(wanted, limit=limit, newest_first=True)[::-1]
        _print(rows, output, json=json, is_stream=follow)
        if not follow:
            return
        for row in opened.follow(rows[-1].cursor if rows else None, filter=wanted):
            _print([row], output, json=json, is_stream=True)


@app.command("tree")
def tree(
    context: typer.Context,
    run: Annotated[str, typer.Argument(metavar="RUN", help="The run, or the beginning of its id.")],
    store: StoreOption = None,
    json: JsonOption = False,
) -> None:
    """Print one run as a tree of its calls.

    Below each call are the calls of its program.
    """
    output: Output = context.obj
    with open_store(store) as opened:
        run_id = find_logged_run(opened, run)
        rows = opened.log_tree(run_id)
    if json:
        output.result_json([_as_json(row) for row in rows])
        return
    output.result("\n".join([_run_line(run_id, rows), *_branches(rows)]))


@app.command("verify")
def verify(context: typer.Context, store: StoreOption = None, json: JsonOption = False) -> None:
    """Check that the log is as it was written.

    No row was changed, moved, put in or taken out, and no run or step is missing, there or in the store.
    """
    output: Output = context.obj
    with open_store(store) as opened:
        check = opened.verify(report=_progress_to(output))
    if json:
        lists = {"missing": list(check.missing), "unlogged": list(check.unlogged)}
        output.result_json({"rows": check.rows, "bad_seq": check.bad_seq, "problem": check.problem, **lists})
    elif check.is_whole:
        output.result(count_of(check.rows, "row, as it was written", "rows, as they were written"))
    lacking = [("the store", name) for name in check.missing] + [("the log", name) for name in check.unlogged]
    if lacking:
        output.say("\n".join(f"missing from {where}: {one_line(name)}" for where, name in lacking))
    if check.bad_seq is None and check.unlogged:
        lost = count_of(len(check.unlogged), "run or step", "runs or steps")
        raise Stop(ExitCode.FAILED, f"the log was cut: it lacks {lost} of the store")
    if check.bad_seq is None and check.missing:
        lost = count_of(len(check.missing), "run or step", "runs or steps")
        raise Stop(ExitCode.FAILED, f"the log is whole, but the store lacks {lost} of it")
    if not check.is_whole:
        raise Stop(ExitCode.FAILED, f"row {check.bad_seq} of the log is wrong: {check.problem}")


def _progress_to(output: Output) -> Callable[[int, int], None]:
    """Returns the function that says how far a check is, once each `PROGRESS_S`."""
    due = time.monotonic() + PROGRESS_S

    def report(done: int, total: int) -> None:
        nonlocal due
        if time.monotonic() >= due:
            due = time.monotonic() + PROGRESS_S
            output.show_progress(f"checked {done:,} of {total:,} rows")

    return report


def _run_line(run_id: str, rows: Sequence[LogRow]) -> str:
    """Returns the first line of a tree: the run, and for whom and by which agent it was made, if that is known."""
    if not rows:
        return run_id
    first = rows[0]
    who = (f" for {first.principal}" if first.principal else "") + (f" by {first.agent}" if first.agent else "")
    return one_line(run_id + who)


def _print(rows: Sequence[LogRow], output: Output, *, json: bool, is_stream: bool) -> None:
    if json and is_stream:
        # A stream has one object per line, because a JSON list would never end.
        for row in rows:
            output.result_line(_as_json(row))
    elif json:
        output.result_json([_as_json(row) for row in rows])
    elif is_stream:
        for row in rows:
            output.result(_row_line(row))
    elif rows:
        output.result(table(rows, is_terminal=output.is_terminal))
    else:
        output.say("the log has no such rows")


def table(rows: Sequence[LogRow], *, is_terminal: bool) -> str:
    """Returns a table of rows. Names and ids are whole: where the terminal is narrow, each row has several lines."""
    names = ("ROW", "TIME (UTC)", "WHAT", "TOOL", "STATUS", "PRINCIPAL", "AGENT", "ID")
    cells = [
        (
            str(row.seq),
            moment(row.at).removesuffix(" UTC"),
            row.kind,
            row.tool,
            row.status,
            row.principal,
            row.agent,
            _subject_id(row),
        )
        for row in rows
    ]
    return whole_rows(names, cells, is_terminal=is_terminal)


def _row_line(row: LogRow) -> str:
    who = f"{row.principal or '-'} {row.agent or '-'}"
    return one_line(f"{row.seq} {moment(row.at)} {row.kind} {row.tool or '-'} {row.status} {who} {_subject_id(row)}")


def _subject_id(row: LogRow) -> str:
    """Returns the id of a row's subject. Request ids are shortened to the length that `toolwire approvals` accepts."""
    return row.subject[:SHORT_ID] if row.kind in ("request", "decision") else row.subject


def _branches(rows: Sequence[LogRow]) -> list[str]:
    """Returns the lines of the tree. Requests and decisions are below their call, and calls below their parent."""
    calls = {row.subject for row in rows if row.kind == "call"}
    asked = {row.subject: str(row.entry.get("call_id", "")) for row in rows if row.kind == "request"}
    below: dict[str, list[LogRow]] = {}
    for row in rows:
        parent = str(row.entry.get("parent", "")) if row.kind == "call" else asked.get(row.subject, "")
        below.setdefault(parent if parent in calls else "", []).append(row)
    lines: list[str] = []

    def grow(parent: str, depth: int) -> None:
        for row in below.get(parent, ()):
            named = " ".join(part for part in (row.kind, row.tool, row.status) if part)
            lines.append(one_line(f"{'  ' * depth}{named}  {_subject_id(row)}  {moment(row.at)}"))
            if row.kind == "call" and depth < _DEPTH_LIMIT:
                grow(row.subject, depth + 1)

    grow("", 1)
    return lines


_DEPTH_LIMIT = 64
"""Maximum number of levels in a tree. A log in which a call is its own parent must not loop forever."""


def _as_json(row: LogRow) -> dict[str, Any]:
    return {field.name: json_or_repr(getattr(row, field.name)) for field in fields(row)}

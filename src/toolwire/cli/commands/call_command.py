"""`toolwire call`: calls one tool and prints its result."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping
from concurrent.futures import Future
from contextlib import suppress
from typing import Annotated, Any

import typer

import toolwire
from toolwire.cli.commands.policy_command import honour
from toolwire.cli.completing import complete_tool
from toolwire.cli.exit_codes import ExitCode, exit_codes
from toolwire.cli.loading import registry_of
from toolwire.cli.options import TIMEOUT_S, AskOption, JsonOption, PolicyOption, TimeoutOption, ToolsOption
from toolwire.cli.output import Output
from toolwire.cli.reading import read_text
from toolwire.cli.result_output import as_json, json_or_repr, nothing_came, person_hint, person_text
from toolwire.cli.typed_arguments import read_object, read_pairs
from toolwire.cli.waiting import ConsoleAsker, answer_nothing, terminal_asker, within

EPILOG = f"""Values are read by the tool's schema. A text stays as it is typed; integers,
numbers, true, false and null are what they look like; lists and objects are
written as JSON.

\b
Examples:
  toolwire call search query=budget --tools tools.py
  toolwire call tag names='["a", "b"]' --tools tools.py
  toolwire call search --arguments a.json --tools t.py
  toolwire call watch path=a.log --tools tools.py --stream

{exit_codes("the call failed, or was not allowed to run", ExitCode.UNUSABLE_TOOLS)}"""

_STOP_S = 3.0
"""Seconds for an interrupted call to deliver the output that it already has."""


app = typer.Typer(rich_markup_mode=None, add_completion=False)


@app.command("call", epilog=EPILOG)
def call_tool(
    context: typer.Context,
    name: Annotated[str, typer.Argument(metavar="NAME", help="The tool.", autocompletion=complete_tool)],
    tools: ToolsOption,
    pairs: Annotated[list[str] | None, typer.Argument(metavar="KEY=VALUE", help="Arguments by name.")] = None,
    arguments: Annotated[
        str | None,
        typer.Option(
            metavar="FILE|-", help="A JSON object with arguments, - for standard input. KEY=VALUE wins over it."
        ),
    ] = None,
    policy: PolicyOption = None,
    ask: AskOption = None,
    timeout: TimeoutOption = TIMEOUT_S,
    stream: Annotated[
        bool,
        typer.Option("--stream", help="Print output as the tool produces it; with --json one line for each chunk."),
    ] = False,
    traceback: Annotated[
        bool, typer.Option("--traceback", help="Print the traceback of an exception of the tool, to standard error.")
    ] = False,
    json: JsonOption = False,
) -> None:
    """Call one tool and print its result."""
    output: Output = context.obj
    if traceback:
        logging.getLogger("toolwire.tools").setLevel(logging.WARNING)
    output.keep_stdout()
    approver = terminal_asker(ask)
    registry = registry_of(tools, approver=approver or answer_nothing)
    honour(policy, registry, output)
    given = {**_from_file(arguments), **read_pairs(pairs or (), _schema(registry, name))}
    if stream:
        raise typer.Exit(
            _call_live(registry, name, given, timeout_s=timeout, output=output, as_lines=json, asking=approver)
        )
    result = _result(registry, name, given, timeout, approver)
    if json:
        output.result_json(as_json(result))
    else:
        output.result(person_text(result))
    raise typer.Exit(ExitCode.DONE if result.success else ExitCode.FAILED)


def _from_file(source: str | None) -> dict[str, Any]:
    if source is None:
        return {}
    place = "standard input" if source == "-" else source
    return read_object(read_text(source, what="the file of arguments"), place=place)


def _schema(registry: toolwire.ToolRegistry, name: str) -> dict[str, Any]:
    spec = registry.to_toolspecs().get(name)
    return {} if spec is None else spec.input_schema


def _result(
    registry: toolwire.ToolRegistry, name: str, arguments: dict[str, Any], timeout_s: float, asking: ConsoleAsker | None
) -> toolwire.ToolResult:
    def invoke(result: Future[toolwire.ToolResult]) -> None:
        result.set_result(registry.invoke(name, arguments))

    try:
        return within(timeout_s, invoke, asking=asking)
    except TimeoutError:
        return nothing_came(repr(name), timeout_s, call=toolwire.ToolCall(name, arguments))


def _call_live(
    registry: toolwire.ToolRegistry,
    name: str,
    arguments: Mapping[str, Any],
    *,
    timeout_s: float,
    output: Output,
    as_lines: bool,
    asking: ConsoleAsker | None,
) -> ExitCode:
    """Runs the call, writes its chunks as they arrive, and returns the exit code.

    With `as_lines`, each chunk is one line of JSON.

    Raises:
        KeyboardInterrupt: The user interrupted the call. Its output so far was written.
    """
    toolkit = registry.create_agent_toolkit("toolwire call", registry.tool_library)
    stream = toolkit.call_tool_function({"type": "tool_use", "id": "", "name": name, "input": dict(arguments)})
    show = _JsonLines(output) if as_lines else _GrowingText(output)
    ended: Future[toolwire.ToolResult | None] = Future()

    async def read() -> None:
        async for chunk in stream.deltas() if as_lines else stream:
            if not show.chunk(chunk):
                # A reader that closed its end is not an error, but the call need not continue.
                await stream.aclose()
                break
        ended.set_result(stream.result)

    def stop() -> None:
        stream.interrupt()
        with suppress(TimeoutError):
            ended.result(_STOP_S)

    try:
        within(timeout_s, lambda result: result.set_result(asyncio.run(read())), asking=asking)
        result = ended.result(0)
    except TimeoutError:
        stop()
        result = toolwire.ToolResult.failed(
            "unknown_outcome",
            f"{name!r} did not end within {timeout_s:g} s; it was interrupted, and may still be running.",
            call=toolwire.ToolCall(name, arguments),
        )
    except KeyboardInterrupt:
        stop()
        show.end(ended.result(0) if ended.done() else None)
        raise
    show.end(result)
    return ExitCode.DONE if result is None or result.success else ExitCode.FAILED


class _GrowingText:
    """Writes text as it grows. If the tool replaces earlier text, the new text starts on a new line."""

    def __init__(self, output: Output) -> None:
        self._output = output
        self._written = ""

    def chunk(self, chunk: toolwire.ToolResponse) -> bool:
        """Writes the new part of a chunk. False if the reader has closed its end."""
        metadata = chunk.metadata or {}
        if "progress" in metadata:
            self._output.say(_progress(metadata["progress"]))
            return True
        text = "\n".join(block["text"] if block["type"] == "text" else f"[{block['type']}]" for block in chunk.content)
        # This is the model's hint; `end` writes the person's hint.
        hint = str(metadata["failure"]["hint"]) if "failure" in metadata else ""
        text = text.removesuffix(hint).rstrip("\n") if hint else text
        if metadata.get("is_cut"):
            # Earlier chunks were written in full, so only the error is new.
            failure = chunk.content[-1] if hint else None
            told = failure["text"] if failure is not None and failure["type"] == "text" else ""
            text = f"{self._written}\n{told.removesuffix(hint).rstrip()}".rstrip("\n") if self._written else text
        if not text.startswith(self._written):
            self._output.write("\n")
            self._written = ""
        new, self._written = text[len(self._written) :], text
        return self._output.write(new)

    def end(self, result: toolwire.ToolResult | None) -> None:
        """Ends the last line. A call that was abandoned gets its own line."""
        if self._written and not self._written.endswith("\n"):
            self._output.write("\n")
        if result is None or result.failure is None:
            return
        if result.failure.kind == "unknown_outcome":
            self._output.result(person_text(result))
        elif result.failure.kind != "interrupted" and (hint := person_hint(result.failure)):
            self._output.result(hint)


class _JsonLines:
    """Writes one line of JSON for each chunk, and one for the result."""

    def __init__(self, output: Output) -> None:
        self._output = output

    def chunk(self, chunk: toolwire.ToolResponse) -> bool:
        """Writes the new part of a chunk. False if the reader has closed its end."""
        return self._output.result_line(
            {
                "content": json_or_repr(chunk.content),
                "metadata": {key: json_or_repr(value) for key, value in (chunk.metadata or {}).items()},
                "is_last": chunk.is_last,
                "is_interrupted": chunk.is_interrupted,
                "is_cumulative": chunk.is_cumulative,
            }
        )

    def end(self, result: toolwire.ToolResult | None) -> None:
        """Writes the result."""
        if result is not None:
            self._output.result_line({"result": as_json(result)})


def _progress(progress: Mapping[str, Any]) -> str:
    total = "" if progress["total"] is None else f"/{progress['total']:g}"
    return f"{progress['done']:g}{total} {progress['message']}".rstrip()

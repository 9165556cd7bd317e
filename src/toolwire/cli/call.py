"""`toolwire call`: calls one tool and prints its result."""

from __future__ import annotations

from concurrent.futures import Future
from typing import Annotated, Any

import typer

from toolwire import ToolCall, ToolRegistry, ToolResult
from toolwire.cli.collecting import registry_of
from toolwire.cli.exit_codes import EXIT_CODES, ExitCode
from toolwire.cli.live import call_live
from toolwire.cli.options import TIMEOUT_S, JsonOption, PolicyOption, TimeoutOption, ToolsOption
from toolwire.cli.output import Output, show_tool_errors
from toolwire.cli.policies import honour
from toolwire.cli.reading import read_text
from toolwire.cli.results import as_json, nothing_came, person_text
from toolwire.cli.typed_arguments import read_object, read_pairs
from toolwire.cli.waiting import within

EPILOG = f"""\b
Values are read by the tool's schema. A text stays as it is typed; integers,
numbers, true, false and null are what they look like; lists and objects are
written as JSON.

\b
Examples:
  toolwire call search query=budget limit=3 --tools tools.py
  toolwire call tag names='["a", "b"]' --tools tools.py
  toolwire call search --arguments arguments.json limit=3 --tools tools.py
  toolwire call watch path=log.txt --tools tools.py --stream

{EXIT_CODES}"""


def call(
    context: typer.Context,
    name: Annotated[str, typer.Argument(metavar="NAME", help="The tool.")],
    tools: ToolsOption,
    pairs: Annotated[list[str] | None, typer.Argument(metavar="KEY=VALUE", help="Arguments by name.")] = None,
    arguments: Annotated[
        str | None,
        typer.Option(
            metavar="FILE|-", help="A JSON object with arguments, - for standard input. KEY=VALUE wins over it."
        ),
    ] = None,
    policy: PolicyOption = None,
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
        show_tool_errors()
    output.keep_stdout()
    registry = registry_of(tools)
    honour(policy, registry, output)
    given = {**_from_file(arguments), **read_pairs(pairs or (), _schema(registry, name))}
    if stream:
        raise typer.Exit(call_live(registry, name, given, timeout_s=timeout, output=output, as_lines=json))
    result = _result(registry, name, given, timeout)
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


def _schema(registry: ToolRegistry, name: str) -> dict[str, Any]:
    spec = registry.to_toolspecs().get(name)
    return {} if spec is None else spec.input_schema


def _result(registry: ToolRegistry, name: str, arguments: dict[str, Any], timeout_s: float) -> ToolResult:
    def invoke(result: Future[ToolResult]) -> None:
        result.set_result(registry.invoke(name, arguments))

    try:
        return within(timeout_s, invoke)
    except TimeoutError:
        return nothing_came(repr(name), timeout_s, call=ToolCall(name, arguments))

"""`toolwire artifacts`: lists, shows, compares and exports the artifacts of a store."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.table import Table

import toolwire.tools
from toolwire.cli.display import add_id_column, add_row, count_of, moment, table_text, whole
from toolwire.cli.exit_codes import ExitCode, Stop, exit_codes
from toolwire.cli.options import JsonOption
from toolwire.cli.output import Output
from toolwire.cli.stores import StoreOption, open_store

if TYPE_CHECKING:
    from toolwire.types import ArtifactVersion

EPILOG = f"""\b
Examples:
  toolwire artifacts list --namespace c-17
  toolwire artifacts show plan --namespace c-17
  toolwire artifacts diff plan 1 --namespace c-17
  toolwire artifacts export reports --namespace c-17

{exit_codes("there is no such artifact or version")}"""

app = typer.Typer(rich_markup_mode=None, add_completion=False, no_args_is_help=True, epilog=EPILOG)

NamespaceOption = Annotated[
    str, typer.Option("--namespace", metavar="NAME", help="The namespace, usually the conversation.")
]
IdArgument = Annotated[str, typer.Argument(metavar="ID", help="The artifact.")]


@contextmanager
def _open_artifacts(store: str | None, namespace: str) -> Generator[toolwire.tools.ArtifactManager]:
    with open_store(store) as opened:
        try:
            yield toolwire.tools.ArtifactManager(opened, namespace=namespace)
        except toolwire.tools.ArtifactError as error:
            raise Stop(ExitCode.FAILED, str(error)) from error


@app.callback(epilog=EPILOG)
def _artifacts() -> None:  # pyright: ignore[reportUnusedFunction] - typer keeps it
    """List, read, compare and export texts that models wrote."""


@app.command("list", epilog=EPILOG)
def list_artifacts(
    context: typer.Context, namespace: NamespaceOption, store: StoreOption = None, json: JsonOption = False
) -> None:
    """List the artifacts of a namespace with their newest versions."""
    with _open_artifacts(store, namespace) as artifacts:
        _print(context.obj, artifacts.list(), json=json, none=f"the namespace {namespace!r} has no artifacts")


@app.command("show", epilog=EPILOG)
def show(
    context: typer.Context,
    id: IdArgument,
    namespace: NamespaceOption,
    version: Annotated[int | None, typer.Option(metavar="N", help="An older version.")] = None,
    store: StoreOption = None,
    json: JsonOption = False,
) -> None:
    """Print the text of an artifact."""
    output: Output = context.obj
    with _open_artifacts(store, namespace) as artifacts:
        found = artifacts.read(id, version)
    if json:
        output.result_json(asdict(found))
    else:
        output.result(found.content)


@app.command("history", epilog=EPILOG)
def history(
    context: typer.Context,
    id: IdArgument,
    namespace: NamespaceOption,
    store: StoreOption = None,
    json: JsonOption = False,
) -> None:
    """List the versions of an artifact, oldest first."""
    with _open_artifacts(store, namespace) as artifacts:
        _print(context.obj, artifacts.history(id), json=json)


@app.command("diff", epilog=EPILOG)
def diff(
    context: typer.Context,
    id: IdArgument,
    old: Annotated[int, typer.Argument(metavar="OLD", help="The older version.")],
    namespace: NamespaceOption,
    new: Annotated[int | None, typer.Argument(metavar="[NEW]", help="The newer version; else the newest.")] = None,
    store: StoreOption = None,
) -> None:
    """Print what changed between two versions."""
    output: Output = context.obj
    with _open_artifacts(store, namespace) as artifacts:
        found = artifacts.diff(id, old, new)
    if found:
        output.result(found)
    else:
        output.say("the versions are equal")


@app.command("export", epilog=EPILOG)
def export(
    context: typer.Context,
    folder: Annotated[Path, typer.Argument(metavar="FOLDER", help="Is made if it is not there.")],
    namespace: NamespaceOption,
    store: StoreOption = None,
) -> None:
    """Write the newest version of each artifact to a file."""
    output: Output = context.obj
    with _open_artifacts(store, namespace) as artifacts:
        try:
            written = artifacts.export(folder)
        except OSError as error:
            raise Stop(ExitCode.FAILED, f"{error.filename or folder} cannot be written: {error.strerror}") from error
    output.result("\n".join(map(str, written)))
    output.say(f"{count_of(len(written), 'file')} written")


def _print(output: Output, versions: list[ArtifactVersion], *, json: bool, none: str = "") -> None:
    if json:
        output.result_json([asdict(version) for version in versions])
        return
    if not versions:
        output.say(none)
        return
    table = Table()
    add_id_column(table, "ID", [version.id for version in versions])
    for name in ("VERSION", "TIME (UTC)", "BYTES", "TYPE", "TITLE"):
        table.add_column(name, overflow="fold")
    for version in versions:
        row = (whole(version.id), str(version.version), moment(version.made_at), f"{version.size_bytes:,}")
        add_row(table, *row, version.content_type, version.title)
    output.result(table_text(table, is_terminal=output.is_terminal))

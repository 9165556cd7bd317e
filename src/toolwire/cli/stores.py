"""The store that commands use: runs, pending approvals and the log."""

from __future__ import annotations

import os
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Annotated, Protocol, TypeVar

import typer

import toolwire
from toolwire.cli.exit_codes import ExitCode, Stop
from toolwire.types import Page, RunInfo

T = TypeVar("T")

STORE_VARIABLE = "TOOLWIRE_STORE"
STORE_FILE = Path(".toolwire/journal.db")
"""The default path of the store, in the current folder, because runs belong to the folder they were started in."""

StoreOption = Annotated[
    str | None,
    typer.Option(
        "--store",
        metavar="URL|FILE",
        help=f"The store: a file or a URL; else ${STORE_VARIABLE}, else {STORE_FILE}. "
        "Behind PgBouncer end the URL with ?prepared=false.",
    ),
]

_READ_AT_ONCE = 1_000
"""Entries read per query when the beginning of an id is looked for."""
_PREPARED = "prepared="
"""The setting of a URL that `Store.open` takes as an argument: a command has the URL alone."""


class ReadPage(Protocol[T]):
    """A method of a store that reads a list in pages."""

    def __call__(self, *, limit: int, after: str | None) -> Page[T]: ...


def read_pages(read: ReadPage[T]) -> Iterator[T]:
    """Yields the entries of all pages."""
    page = read(limit=_READ_AT_ONCE, after=None)
    yield from page
    while page.more:
        page = read(limit=_READ_AT_ONCE, after=page.cursor)
        yield from page


@contextmanager
def open_store(
    named: str | None,
    *,
    make: bool = False,
    choose: Callable[[toolwire.Store], toolwire.Retention | None] = lambda _: None,
) -> Generator[toolwire.Store]:
    """Opens the store and closes it afterwards. With `make`, a missing file is created.

    `choose` returns the retention that is applied while the store is open, or None.

    Raises:
        Stop: The store does not exist, or cannot be used.
    """
    url, prepared = find_place(named, make=make)
    try:
        store = toolwire.Store.open(url, prepared=prepared, create=make)
    except (toolwire.ToolwireError, toolwire.DecisionRefused) as error:
        raise unusable_store(error) from error
    try:
        with store:
            retention = choose(store)
            with toolwire.Store.open(url, prepared=prepared, retention=retention) if retention else nullcontext():
                yield store
    except toolwire.DecisionRefused as refused:
        raise Stop(ExitCode.FAILED, str(refused)) from refused
    except toolwire.ToolwireError as error:
        raise unusable_store(error) from error


def find_place(named: str | None, *, make: bool = False) -> tuple[str, bool]:
    """Returns the URL of the store, and whether it may prepare statements.

    Raises:
        Stop: The store is a file that does not exist, or a setting of the URL is not valid.
    """
    return _split_prepared(_url(named or os.environ.get(STORE_VARIABLE), make=make))


def find_run(store: toolwire.Store, named: str) -> tuple[str, str, toolwire.Caller]:
    """Returns the id, protocol and caller of the run with this id, or with an id that begins like this.

    Raises:
        Stop: No run matches, or several do.
    """
    found = _find_exactly(store, named) or _find_runs(store, named)
    if len(found) != 1:
        runs = ", ".join(run.run_id for run in found[:5])
        said = f"{named!r} may be {len(found)} runs: {runs}" if found else f"there is no run {named!r} in the store"
        raise Stop(ExitCode.WRONG_USAGE, said, hint="See `toolwire approvals list` for those that wait.")
    return found[0].run_id, found[0].protocol, found[0].caller


def find_logged_run(store: toolwire.Store, named: str) -> str:
    """Returns the id of the run with this id, or with an id that begins like this.

    The log keeps the rows of a run that was forgotten: such a run is found by its whole id.

    Raises:
        Stop: No run matches, or several do.
    """
    from toolwire.log import LogFilter

    try:
        return find_run(store, named)[0]
    except Stop:
        if store.log(LogFilter(run_id=named), limit=1):
            return named
        raise


def _find_exactly(store: toolwire.Store, named: str) -> list[RunInfo]:
    try:
        return [store.run(named)]
    except toolwire.DecisionRefused as refused:
        if refused.code != "unknown_run":
            raise
        return []


def _find_runs(store: toolwire.Store, named: str) -> list[RunInfo]:
    """Returns the runs with ids that begin like this."""
    return [run for run in read_pages(store.runs) if run.run_id.startswith((named, f"r_{named}"))]


def unusable_store(error: toolwire.ToolwireError) -> Stop:
    """Returns the error that ends a command whose store cannot be used."""
    message, _, hint = str(error).partition("\n")
    return Stop(ExitCode.WRONG_USAGE, message, hint=hint)


def _url(named: str | None, *, make: bool) -> str:
    if named and "://" in named and not named.startswith("sqlite"):
        return named
    if named == "memory:":
        hint = "Name a file or a URL; `toolwire serve --store none` serves without a store."
        raise Stop(ExitCode.WRONG_USAGE, "memory: is a store inside one program", hint=hint)
    path = Path(named.partition(":///")[2] or named) if named else STORE_FILE
    if not path.exists():
        if not make:
            hint = f"Name another with --store or ${STORE_VARIABLE}; `toolwire run` makes one."
            raise Stop(ExitCode.WRONG_USAGE, f"there is no store at {path}", hint=hint)
        _make_folder(path)
    return named if named and "://" in named else f"sqlite:///{path}"


def _split_prepared(url: str) -> tuple[str, bool]:
    """Returns the URL without `prepared`, and the value of `prepared`.

    Raises:
        Stop: The value is not valid.
    """
    start, mark, query = url.rpartition("?")
    settings = query.split("&") if mark else []
    given = [setting for setting in settings if setting.startswith(_PREPARED)]
    if not given or url.startswith("sqlite"):
        return url, True
    if given != [_PREPARED + "false"]:
        raise Stop(
            ExitCode.WRONG_USAGE, f"{'&'.join(given)} in the URL of the store: write {_PREPARED}false, or leave it out"
        )
    others = "&".join(setting for setting in settings if setting not in given)
    return f"{start}?{others}" if others else start, False


def _make_folder(path: Path) -> None:
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        if path == STORE_FILE:
            # Approval requests and the key must not get into a repository.
            (path.parent / ".gitignore").write_text("*\n", encoding="ascii")
    except OSError as error:
        raise Stop(ExitCode.WRONG_USAGE, f"no store can be created at {path}: {error.strerror or error}") from error

"""The store that commands read and write: runs, what waits for a person, and the log."""

from __future__ import annotations

import os
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from toolwire import DecisionRefused, ToolwireError
from toolwire.cli.exit_codes import ExitCode, Stop

if TYPE_CHECKING:
    from toolwire import Store

STORE_VARIABLE = "TOOLWIRE_STORE"
STORE_FILE = Path(".toolwire/journal.db")
"""Where the store lies when none is named: in the folder that one works in, as its runs belong to it."""

StoreOption = Annotated[
    str | None,
    typer.Option(
        "--store",
        metavar="URL|FILE",
        help=f"The store: a file or a URL; else ${STORE_VARIABLE}, else {STORE_FILE}.",
    ),
]


@contextmanager
def open_store(named: str | None, *, make: bool = False) -> Generator[Store]:
    """The store, closed afterwards. `make`: a file that is not there is made.

    Raises:
        Stop: there is none, or it cannot be used.
    """
    # A database's library is for those who use a store.
    from toolwire import Store

    url = _url(named or os.environ.get(STORE_VARIABLE), make=make)
    try:
        store = Store.open(url)
    except (ToolwireError, DecisionRefused) as error:
        raise unusable_store(error) from error
    try:
        with store:
            yield store
    except DecisionRefused as refused:
        raise refusal(refused) from refused
    except ToolwireError as error:
        raise unusable_store(error) from error


def refusal(refused: DecisionRefused) -> Stop:
    """The end of a command whose decision or run does not count."""
    return Stop(ExitCode.FAILED, str(refused))


def unusable_store(error: ToolwireError) -> Stop:
    """The end of a command whose store cannot be used."""
    message, _, hint = str(error).partition("\n")
    return Stop(ExitCode.WRONG_USAGE, message, hint=hint)


def _url(named: str | None, *, make: bool) -> str:
    if named and "://" in named and not named.startswith("sqlite"):
        return named
    path = Path(named.partition(":///")[2] or named) if named else STORE_FILE
    if not path.exists():
        if not make:
            hint = f"Name another with --store or ${STORE_VARIABLE}; `toolwire run` makes one."
            raise Stop(ExitCode.WRONG_USAGE, f"there is no store at {path}", hint=hint)
        _make_folder(path)
    return named if named and "://" in named else f"sqlite:///{path}"


def _make_folder(path: Path) -> None:
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        if path == STORE_FILE:
            # What people were asked and the key belong in no repository.
            (path.parent / ".gitignore").write_text("*\n", encoding="ascii")
    except OSError as error:
        raise Stop(ExitCode.WRONG_USAGE, f"no store can be made at {path}: {error.strerror or error}") from error

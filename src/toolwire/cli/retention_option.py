"""How long a store keeps what has ended, as an option, and what was deleted, as text."""

from __future__ import annotations

from dataclasses import fields
from typing import TYPE_CHECKING, Annotated

import typer

import toolwire
from toolwire.cli.display import count_of
from toolwire.cli.exit_codes import ExitCode, Stop

if TYPE_CHECKING:
    from toolwire.types import PruneReport

KEEP_ALL = "none"
_SUFFIX = "_days"

RetentionOption = Annotated[
    str | None,
    typer.Option(
        "--retention",
        metavar="DAYS",
        help="Days to keep what has ended, such as runs=30,log=365,results=7. A part that is left out is kept.",
    ),
]


def read_retention(written: str) -> toolwire.Retention:
    """Returns the retention that an option gives. `none` keeps everything.

    Raises:
        Stop: It is not a retention.
    """
    if written == KEEP_ALL:
        return toolwire.Retention()
    names = [field.name.removesuffix(_SUFFIX) for field in fields(toolwire.Retention)]
    days: dict[str, float] = {}
    for part in written.split(","):
        name, _, number = part.strip().partition("=")
        if name + _SUFFIX in days:
            hint = f"Write {name} once."
            raise Stop(ExitCode.WRONG_USAGE, f"--retention: {name} has two numbers of days", hint=hint)
        try:
            if name not in names:
                raise ValueError
            days[name + _SUFFIX] = float(number)
        except ValueError:
            hint = f"Write such as runs=30,log=365,results=7: numbers of days for {', '.join(names)}."
            raise Stop(ExitCode.WRONG_USAGE, f"--retention: {part.strip()!r} is not a part of one", hint=hint) from None
    try:
        return toolwire.Retention(**days)
    except toolwire.ConfigurationError as error:
        raise Stop(ExitCode.WRONG_USAGE, f"--retention: {error}") from error


def write_retention(retention: toolwire.Retention) -> str:
    """Returns the option's text for a retention."""
    given = {field.name: getattr(retention, field.name) for field in fields(retention)}
    parts = [f"{name.removesuffix(_SUFFIX)}={days:g}" for name, days in given.items() if days is not None]
    return ",".join(parts) or KEEP_ALL


def report_text(report: PruneReport) -> str:
    """Returns what was deleted as a part of a sentence."""
    parts = [
        count_of(report.runs, "run"),
        f"the whole results of {count_of(report.results, 'run')}",
        count_of(report.long_results, "long result"),
        count_of(report.log_rows, "row of the log", "rows of the log"),
    ]
    return f"{', '.join(parts)}: {count_of(report.bytes, 'byte')}"

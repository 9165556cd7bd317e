"""How long a store keeps what has ended."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import cast

from toolwire.vocabulary.errors import ConfigurationError

DAY_S = 86_400.0

DAYS_MOST = 1_000_000
"""The longest retention: 2,700 years. A time so long ago is still a number of every database."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Retention:
    """How many days a store keeps what has ended, for `Store.open(url, retention=...)` and `Store.retain`.

    None keeps everything. A run that has not ended stays whatever is given, and so does one that a process holds.
    Documents, conversations and artifacts stay too.

    Attributes:
        runs_days: Days after its end at which a run is deleted with its calls, requests and decisions. A run in which a
            person chose to remember a rule stays.
        log_days: Days after which a row of the log is deleted. `Store.verify` still checks the rest.
        results_days: Days after its end at which a run loses the whole results of its calls. What the model read of
            them stays, so that `Session.resume` returns the recorded turn.

    Raises:
        ConfigurationError: A number is not above 0, or above `DAYS_MOST`.
    """

    runs_days: float | None = None
    log_days: float | None = None
    results_days: float | None = None

    def __post_init__(self) -> None:
        for field in fields(self):
            given = cast("object", getattr(self, field.name))
            if given is None:
                continue
            if isinstance(given, bool) or not isinstance(given, int | float) or not 0 < given <= DAYS_MOST:
                raise ConfigurationError(
                    f"Retention({field.name}={given!r:.80}): give a number of days above 0 and at most {DAYS_MOST:,}, "
                    "or None to keep everything"
                )


def check_retention(given: object) -> None:
    """Accepts a retention.

    Raises:
        ConfigurationError: It is another value.
    """
    if not isinstance(given, Retention):
        raise ConfigurationError(f"retention={given!r:.80}: write retention=Retention(runs_days=30)")


@dataclass(frozen=True, slots=True, kw_only=True)
class PruneReport:
    """What `Store.retain` deleted, or would delete.

    Attributes:
        runs: Number of runs deleted with all their records.
        results: Number of runs that lost the whole results of their calls.
        long_results: Number of long results deleted, in which a model could read on.
        log_rows: Number of rows of the log deleted.
        bytes: Bytes of the values that were deleted. The database uses the room again; `Store.compact` returns it to
            the disk.
    """

    runs: int = 0
    results: int = 0
    long_results: int = 0
    log_rows: int = 0
    bytes: int = 0

    def __add__(self, other: PruneReport) -> PruneReport:
        """Returns the sum of two reports."""
        return PruneReport(**{one.name: getattr(self, one.name) + getattr(other, one.name) for one in fields(self)})

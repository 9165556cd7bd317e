"""The example server: it gives the time."""

from datetime import UTC, datetime


def now() -> str:
    """Gives the date and time in UTC."""
    return datetime.now(UTC).isoformat(timespec="seconds")

"""`Done`: the return value of a blocking method that other libraries have as a coroutine."""

from __future__ import annotations

from collections.abc import Generator


class Done:
    """Work that is over. Awaiting it gives None at once, so that code which awaited such a method elsewhere works."""

    def __await__(self) -> Generator[None, None, None]:
        return
        yield

    def __repr__(self) -> str:
        return "<Done>"

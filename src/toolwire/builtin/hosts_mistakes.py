"""The host's mistakes that a program's calls meet: the program is not told of them, and the host is."""

from __future__ import annotations

from toolwire.sandbox.program import Answer, AnswerError
from toolwire.vocabulary.errors import BoundValueError


class HostsMistakes:
    """Keeps the host's wrong bound values that a program's calls met, until the program has ended."""

    answer = Answer(
        error=AnswerError(
            type_name="",
            message="It cannot run: a value that the host sets does not fit. The host is told.",
            family="unavailable",
        )
    )
    """The answer for the program. The value and its name are only for the host."""

    def __init__(self) -> None:
        self._found: list[BoundValueError] = []

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> bool:
        if not isinstance(error, BoundValueError):
            return False
        self._found.append(error)
        return True

    def raise_first(self) -> None:
        """Raises the first mistake, if there is one."""
        if self._found:
            raise self._found[0]

"""Threads and the sandbox of a registry: held inside `with`, released by `close`."""

from __future__ import annotations

from types import TracebackType
from typing import TYPE_CHECKING, Self

if TYPE_CHECKING:
    from toolwire.facade.parts import Parts


class Lifecycle:
    """A registry as a context manager."""

    @property
    def _parts(self) -> Parts:
        raise NotImplementedError

    def close(self) -> None:
        """Cancels calls in the background, and releases this registry's hold on threads and the sandbox.

        The runtime ends them when no other registry holds them. A closed registry can be used again: it starts them
        anew.
        """
        parts = self._parts
        if parts.background is not None:
            parts.background.close()
        if parts.is_held:
            parts.is_held = False
            parts.setup.runtime.release()

    def __enter__(self) -> Self:
        parts = self._parts
        if not parts.is_held:
            parts.is_held = True
            parts.setup.runtime.hold()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    async def __aenter__(self) -> Self:
        return self.__enter__()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

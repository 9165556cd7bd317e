"""The names of the tools of a registry or a toolkit, as a container."""

from __future__ import annotations

from collections.abc import Iterator

from toolwire.invocation.scope import Scope


class NamedTools:
    """Gives a registry or a toolkit `len`, `in` and iteration over the names of all its tools."""

    @property
    def _call_scope(self) -> Scope:
        raise NotImplementedError

    def __len__(self) -> int:
        return len(self._call_scope.catalogue)

    def __iter__(self) -> Iterator[str]:
        return iter([entry.name for entry in self._call_scope.catalogue])

    def __contains__(self, name: object) -> bool:
        return name in self._call_scope.catalogue

    def __bool__(self) -> bool:
        # `registry or default` must not drop a registry because it is empty.
        return True

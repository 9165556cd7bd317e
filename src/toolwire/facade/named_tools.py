"""The names of the tools of a registry or a toolkit, as a container."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from toolwire.catalogue.entry import Entry
from toolwire.invocation.judge import judge_by_name
from toolwire.invocation.scope import Scope
from toolwire.permission.policy import Policy


class NamedTools:
    """Gives a registry or a toolkit `len`, `in`, iteration over the names of all its tools, and a display."""

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

    def _repr_html_(self) -> str:
        """Returns the tools with permission and description as an HTML table, which notebooks show."""
        return tools_html(self._call_scope.catalogue, self._call_scope.policy)


def tools_html(entries: Iterable[Entry], policy: Policy) -> str:
    """Returns the tools with their permission and description as an HTML table."""
    from toolwire.vocabulary.html_display import html_table

    rows = [(entry.name, judge_by_name(entry, policy).effect, _first_line(entry)) for entry in entries]
    return html_table(rows, head=("tool", "permission", "description"))


def _first_line(entry: Entry) -> str:
    if entry.disabled is not None:
        return f"Disabled: {entry.disabled}"
    return entry.tool.description.strip().partition("\n")[0]

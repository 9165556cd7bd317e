"""`help(...)` for programs: a signature and a docstring, in short. `pydoc` would need a pager and many modules."""

import builtins
import inspect
import textwrap
from collections.abc import Callable, Mapping
from typing import Any

_INDENT = "    "
_ABSENT: Any = object()


class Help:
    """The program's `help`: prints to the program's output."""

    def __init__(self, names: Mapping[str, Any]) -> None:
        self._names = names
        self._signatures: Mapping[str, str] = {}

    def know(self, signatures: Mapping[str, str]) -> None:
        """Takes the signatures of the tools, by the names that a program writes."""
        self._signatures = signatures

    def __call__(self, *subjects: Any) -> None:
        """Prints help for an object or a name, or the list of tools if nothing is given."""
        print(self._text(*subjects))  # noqa: T201 - it is the program's own output

    def _text(self, subject: Any = _ABSENT) -> str:
        found = self._find(subject) if isinstance(subject, str) else subject
        if found is not _ABSENT:
            return self._of(found)
        return self._tools() if subject is _ABSENT else f"No help for {subject!r}.\n{self._tools()}"

    def _find(self, path: str) -> Any:
        first, *attributes = path.split(".")
        found = self._names.get(first, getattr(builtins, first, _ABSENT))
        for attribute in attributes:
            found = getattr(found, attribute, _ABSENT)
        return found

    def _tools(self) -> str:
        if not self._signatures:
            return "The tools: none"
        return "\n".join(["The tools:", *(f"{_INDENT}{signature}" for signature in self._signatures.values())])

    def _of(self, subject: Any) -> str:
        head = self._head(subject)
        lines = [head]
        docstring = inspect.getdoc(subject)
        # The docstring of a tool without one is its signature.
        if docstring and docstring != head:
            lines.append(textwrap.indent(docstring, _INDENT))
        if not inspect.isroutine(subject):
            public = [name for name in dir(subject) if not name.startswith("_")]
            lines += [f"{_INDENT}Names: {', '.join(public)}"] if public else []
        return "\n".join(lines)

    def _head(self, subject: Any) -> str:
        name = getattr(subject, "__name__", "")
        if not name:
            return type(subject).__name__
        if name in self._signatures and self._names.get(name) is subject:
            return self._signatures[name]
        return f"{name}{_signature(subject)}" if callable(subject) else name


def _signature(subject: Callable[..., Any]) -> str:
    try:
        return str(inspect.signature(subject))
    except (TypeError, ValueError):
        return "(...)"

"""Tools as functions: a program calls them like any function, and a wrong call is a TypeError at its own line."""

from collections.abc import Callable, Sequence
from typing import Any

from .nearest import nearest
from .tool_calls import CallChannel

LATER = " (later)"
"""Added to a tool's name in the program's globals for the variant that returns an awaitable. A program cannot write it.
"""

Finish = Callable[[int, dict[str, Any]], Any]


class ToolTable:
    """The tools as the host described them: `[program name, signature, raises, parameters, docstring]`.

    Each parameter is `[name, program name, kind, required]`. No text names the tools in `unnamed`.
    """

    def __init__(self, described: list[Any], unnamed: Sequence[str] = ()) -> None:
        self._described = described
        self.unnamed = frozenset(unnamed)
        self.names: list[str] = [tool[0] for tool in described]
        self.signatures: dict[str, str] = {
            tool[0]: _signature(tool) for tool in described if tool[0] not in self.unnamed
        }
        self.raises: list[str] = [name for tool in described for name in tool[2]]

    def functions(self, calls: CallChannel) -> dict[str, Callable[..., Any]]:
        """Returns each tool under its name."""
        return {tool[0]: self._stub(position, calls.now) for position, tool in enumerate(self._described)}

    def awaitables(self, calls: CallChannel) -> dict[str, Callable[..., Any]]:
        """Returns each tool's awaitable variant, under its name with LATER."""
        return {tool[0] + LATER: self._stub(position, calls.later) for position, tool in enumerate(self._described)}

    def _stub(self, position: int, finish: Finish) -> Callable[..., Any]:
        tool = self._described[position]
        return _stub(position, tool, finish, tool[4] or _signature(tool))


def _stub(position: int, tool: list[Any], finish: Finish, docstring: str) -> Callable[..., Any]:
    program_name, parameters = tool[0], tool[3]
    plain = [parameter for parameter in parameters if parameter[2] in ("positional_only", "either")]
    names = [parameter[0] for parameter in plain]
    most = len(names)
    needed = {parameter[1] for parameter in parameters if parameter[3]}
    # The fast path is for tools whose parameters are all ordinary ones.
    keywords = {parameter[1]: parameter[0] for parameter in parameters if parameter[2] in ("either", "keyword_only")}
    is_plain = all(parameter[2] in ("either", "keyword_only") for parameter in parameters)
    required_first = sum(1 for parameter in plain if parameter[3])
    is_listed = is_plain and not any(parameter[2] == "keyword_only" and parameter[3] for parameter in parameters)

    def stub(*given: Any, **named: Any) -> Any:
        if is_listed and not named and required_first <= len(given) <= most:
            return finish(position, dict(zip(names, given)))  # noqa: B905 - `strict` doubles the time; fewer are meant
        if not given and is_plain and keywords.keys() >= named.keys() and named.keys() >= needed:
            return finish(position, {keywords[name]: value for name, value in named.items()})
        return finish(position, _bind(tool, given, named))

    stub.__name__ = stub.__qualname__ = program_name
    stub.__module__ = "__main__"
    stub.__doc__ = docstring
    stub.__annotations__ = {}
    return stub


def _bind(tool: list[Any], given: tuple[Any, ...], named: dict[str, Any]) -> dict[str, Any]:
    """Returns the arguments by the tool's own names, bound by CPython itself to a function of the same signature."""
    try:
        bound: dict[str, Any] = _twin(tool)(*given, **named)
    except TypeError as error:
        raise TypeError(_with_suggestion(str(error), tool, named)) from None
    found: dict[str, Any] = {}
    for name, program_name, kind, _ in tool[3]:
        value = bound[program_name]
        if kind == "var_positional":
            found[name] = list(value)
        elif value is not _NOT_GIVEN:
            found[name] = value
    return found


class _NotGiven:
    pass


_NOT_GIVEN = _NotGiven()
_TWINS: dict[int, Callable[..., dict[str, Any]]] = {}


def _twin(tool: list[Any]) -> Callable[..., dict[str, Any]]:
    """Returns a function of the tool's signature and name that returns its arguments. It raises CPython's errors."""
    key = id(tool)
    if key not in _TWINS:
        names = {"not_given": _NOT_GIVEN}
        exec(f"def {tool[0]}({_parameters_text(tool)}): return locals()", names)  # noqa: S102 - names the host checked
        made: Any = names[tool[0]]
        _TWINS[key] = made
    return _TWINS[key]


def _parameters_text(tool: list[Any], default: str = "not_given") -> str:
    parts: list[str] = []
    kinds = [parameter[2] for parameter in tool[3]]
    star = False
    for place, (_, program_name, kind, required) in enumerate(tool[3]):
        if kind == "var_positional":
            star = True
            parts.append(f"*{program_name}")
            continue
        if kind == "var_keyword":
            parts.append(f"**{program_name}")
            continue
        if kind == "keyword_only" and not star:
            star = True
            parts.append("*")
        parts.append(program_name if required else f"{program_name}={default}")
        if kind == "positional_only" and (place + 1 == len(kinds) or kinds[place + 1] != "positional_only"):
            parts.append("/")
    return ", ".join(parts)


def _signature(tool: list[Any]) -> str:
    return tool[1] or f"{tool[0]}({_parameters_text(tool, '...')})"


def _with_suggestion(message: str, tool: list[Any], named: dict[str, Any]) -> str:
    """Returns CPython's message with the nearest name; newer versions add the name themselves."""
    if "unexpected keyword argument" not in message or "Did you mean" in message:
        return message
    known = [parameter[1] for parameter in tool[3] if parameter[2] in ("either", "keyword_only")]
    for name in named:
        close = nearest(name, known)
        if name not in known and close and f"'{name}'" in message:
            return f"{message}. Did you mean '{close}'?"
    return message

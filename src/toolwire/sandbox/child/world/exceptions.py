"""The exceptions that tools raise in a program: by name, and a small family that always exists."""

import ast
import builtins
from typing import Any


class ToolError(Exception):
    """A tool failed. Every exception of a tool that is not one of Python's own is one of these."""


class ToolDenied(ToolError, PermissionError):
    """The call was not allowed; it did not run."""


class ToolTimeout(ToolError, TimeoutError):
    """The tool took too long and was stopped."""


class InvalidArguments(ToolError, ValueError):
    """The arguments do not fit the tool; it did not run."""


class ToolUnavailable(ToolError, ConnectionError):
    """The tool cannot be reached now, or too much is running."""


class LimitReached(ToolError):
    """A limit of the program or of the tool was reached."""


FAMILIES: dict[str, type[ToolError]] = {
    "denied": ToolDenied,
    "timeout": ToolTimeout,
    "limit": LimitReached,
    "arguments": InvalidArguments,
    "unavailable": ToolUnavailable,
    "internal": ToolError,
}
DOCUMENTED: dict[str, type[ToolError]] = {kind.__name__: kind for kind in (ToolError, *FAMILIES.values())}
for _kind in DOCUMENTED.values():
    # Shown by their bare name, as Python's own exceptions.
    _kind.__module__ = "builtins"

# A future cannot carry these two: they mean the end of an iteration.
_NOT_AS_SUCH = frozenset({"StopIteration", "StopAsyncIteration"})


class ToolExceptions:
    """Finds or makes the class for an exception's name; one name is one class for the whole program."""

    def __init__(self) -> None:
        self._made: dict[str, type[BaseException]] = dict(DOCUMENTED)

    def class_named(self, name: str) -> type[BaseException]:
        """Returns Python's own exception of that name, a documented one, or a new subclass of ToolError."""
        own = getattr(builtins, name, None)
        if isinstance(own, type) and issubclass(own, Exception) and name not in _NOT_AS_SUCH:
            return own
        if name not in self._made:
            self._made[name] = type(name, (ToolError,), {"__module__": "builtins"})
        return self._made[name]

    def of(self, type_name: str, message: str, family: str) -> Exception:
        """Returns the exception to raise for an answer that is an error."""
        kind: type[Any] = FAMILIES.get(family) or self.class_named(_identifier(type_name))
        try:
            error = kind(_parse_key(message) if kind is KeyError else message)
            if str(error) == message:
                return error
        except TypeError:  # such as UnicodeDecodeError, which takes five arguments
            pass
        return self._plain(kind)(message)

    def _plain(self, kind: type[BaseException]) -> type[Exception]:
        """Returns a subclass that takes the message alone, for exceptions that reword it or need more arguments."""
        key = f"{kind.__name__} plain"
        if key not in self._made:
            base = kind if issubclass(kind, Exception) and not issubclass(kind, BaseExceptionGroup) else ToolError
            members = {"__module__": "builtins", "__init__": _keep_message, "__str__": _message}
            made: type[Any] = type(kind.__name__, (base,), members)
            self._made[key] = made
        found: Any = self._made[key]
        return found


def _keep_message(self: BaseException, message: str) -> None:
    self.args = (message,)


def _message(self: BaseException) -> str:
    return str(self.args[0])


def _identifier(name: str) -> str:
    return name if name.isidentifier() else "ToolError"


def _parse_key(message: str) -> Any:
    """Returns the key that a KeyError was made of: its text is the key's repr."""
    try:
        return ast.literal_eval(message)
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        return message

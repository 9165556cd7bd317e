"""All exceptions of toolwire, grouped by the party that must act.

ToolwireError
├── ForDeveloper              wrong code or configuration; never shown to a model
│   ├── DefinitionError       a function, class, code or schema that cannot become a tool (a TypeError)
│   ├── BindingError          a bind or unbind that cannot work (a ValueError)
│   │   └── BoundValueError   a value from state that its parameter cannot take: raised by the call that uses it
│   ├── RegistrationError     a name that is taken, unknown or unusable here (a ValueError)
│   └── ConfigurationError    a setting or argument out of its range (a ValueError)
├── ForOperator               this machine lacks something
│   ├── SandboxUnavailable    no sandbox as strong as the one asked for
│   ├── ServerUnavailable     an MCP server cannot be reached, or cannot list its tools
│   └── StoreUnavailable      the database of runs and log cannot be used
├── CallNotSent               a tool raises it: its call was not sent, so the result is the failure `unavailable`
├── CallNotAnswered           a tool raises it: its call was sent, not answered, and fails as `unknown_outcome`
├── CallFailed                a failed call, where its caller asked for a plain value (vocabulary/results.py)
├── QuestionDeclined          a person did not answer a tool's question (vocabulary/questions.py)
├── ArtifactError             an artifact cannot be read or changed as asked (journal/artifacts/artifact.py)
│   └── ArtifactConflict      it was changed meanwhile, or exists already
├── FileRefused               a file cannot be read or changed as asked (builtin/files/paths.py)
│   └── FileConflict          it was changed since it was read
├── DocumentChanged           someone else saved the document of the conversation since it was read
└── Unrepresentable           a value that JSON cannot hold; a call's becomes the failure `invalid_result` (a TypeError)

A failed tool is not an exception: it is a `ToolResult` with a `failure`.
"""

from __future__ import annotations


class ToolwireError(Exception):
    """The base class of all toolwire exceptions."""


class ForDeveloper(ToolwireError):
    """Wrong code or configuration. The message names the place and the correction."""


class DefinitionError(ForDeveloper, TypeError):
    """An object cannot become a tool. Raised at definition, never at a call."""


class BindingError(ForDeveloper, ValueError):
    """A parameter cannot be bound or unbound."""


class BoundValueError(BindingError):
    """A value from state that its parameter cannot take. The call that would use it raises this; no model is told."""


class RegistrationError(ForDeveloper, ValueError):
    """A tool name is already taken, unknown or invalid."""


class ConfigurationError(ForDeveloper, ValueError):
    """A setting does not exist or is out of range."""


class ForOperator(ToolwireError):
    """This machine lacks something. The message names it, and the command that installs it."""


class SandboxUnavailable(ForOperator):
    """This machine has no sandbox of the required level.

    Attributes:
        report: The observations, layer by layer.
        how_to_fix: One line for the operator.
    """

    def __init__(self, message: str, *, report: dict[str, str], how_to_fix: str) -> None:
        super().__init__(f"{message}\n{how_to_fix}")
        self.report = report
        self.how_to_fix = how_to_fix


class ServerUnavailable(ForOperator):
    """An MCP server cannot be started, reached or asked for its tools. The message says why."""


class StoreUnavailable(ForOperator):
    """The store cannot be used: its driver, file, server or key is missing or damaged. Nothing was written."""


class CallNotSent(ToolwireError):
    """A tool raises this if its call certainly had no effect. The call fails as `unavailable`, with the message."""


class CallNotAnswered(ToolwireError):
    """A tool raises this if its call was sent and no answer came. The call fails as `unknown_outcome`."""


class DocumentChanged(ToolwireError):
    """The document of a conversation was saved by someone else since it was read. Nothing was written.

    Attributes:
        version: The current version of the document.
    """

    def __init__(self, conversation: str, *, given: int, version: int) -> None:
        super().__init__(
            f"the document of conversation {conversation!r} is at version {version}, not {given}: read it again, make "
            f"your change, and save that with version={version}"
        )
        self.version = version


class Unrepresentable(ToolwireError, TypeError):
    """A value cannot be written as JSON.

    Attributes:
        what: A description of the value.
        path: The place in the whole value, as `.rows[3].when`.
    """

    def __init__(self, what: str, *, path: str) -> None:
        place = f" at {path.lstrip('.')}" if path else ""
        super().__init__(f"{what} cannot be written as JSON{place}")
        self.what = what
        self.path = path

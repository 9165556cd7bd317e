"""Every exception of ours, split by who must act.

ToolwireError
├── ForDeveloper              wrong code or configuration; never shown to a model
│   ├── DefinitionError       a function, class, code or schema that cannot become a tool (a TypeError)
│   ├── BindingError          a bind or unbind that cannot work (a ValueError)
│   ├── RegistrationError     a name that is taken, unknown or unusable here (a ValueError)
│   └── ConfigurationError    a setting or argument out of its range (a ValueError)
├── ForOperator               this machine lacks something
│   ├── SandboxUnavailable    no sandbox as strong as the one asked for
│   └── StoreUnavailable      the database of runs and log cannot be used
├── CallFailed                a failed call, where its caller asked for a plain value (vocabulary/results.py)
└── Unrepresentable           a value that JSON cannot hold; a call's becomes the failure `invalid_result` (a TypeError)

A tool that fails is not an exception: it is a `ToolResult` whose `failure` says what happened.
"""

from __future__ import annotations


class ToolwireError(Exception):
    """Root of all exceptions that toolwire raises of its own accord."""


class ForDeveloper(ToolwireError):
    """Wrong code or configuration. The message names the place and what to write instead."""


class DefinitionError(ForDeveloper, TypeError):
    """Something that cannot become a tool: raised when it is defined, never when it is called."""


class BindingError(ForDeveloper, ValueError):
    """A parameter that cannot be bound or unbound."""


class RegistrationError(ForDeveloper, ValueError):
    """A tool name that is already taken, not there, or impossible."""


class ConfigurationError(ForDeveloper, ValueError):
    """A setting that does not exist or is out of its range."""


class ForOperator(ToolwireError):
    """This machine lacks something. The message says what, and the command that brings it."""


class SandboxUnavailable(ForOperator):
    """No sandbox of the level asked for can be had here.

    `report` says, layer by layer, what was observed; `how_to_fix` is one line for the operator.
    """

    def __init__(self, message: str, *, report: dict[str, str], how_to_fix: str) -> None:
        super().__init__(f"{message}\n{how_to_fix}")
        self.report = report
        self.how_to_fix = how_to_fix


class StoreUnavailable(ForOperator):
    """The store cannot be used: its driver, file, server or key is missing or damaged. Nothing was written."""


class Unrepresentable(ToolwireError, TypeError):
    """A value that cannot be written as JSON. `path` says where in the whole, as `.rows[3].when`."""

    def __init__(self, what: str, *, path: str) -> None:
        place = f" at {path.lstrip('.')}" if path else ""
        super().__init__(f"{what} cannot be written as JSON{place}")
        self.what = what
        self.path = path

"""Checks the options of a session's prompt."""

from __future__ import annotations

import inspect
from typing import Any

from toolwire.protocols.base import CallingProtocol
from toolwire.vocabulary.errors import ConfigurationError


def prompt_options(protocol: CallingProtocol, has_ending_line: bool, **given: Any) -> dict[str, Any]:
    """Returns the options for `protocol.describe`; an option that is None is left to the protocol.

    With `has_ending_line` a native protocol may have a language, for that line alone.

    Raises:
        ConfigurationError: The protocol writes no prompt or lacks the option, or the value is unknown.
    """
    options = {option: value for option, value in given.items() if value is not None}
    if has_ending_line and protocol.is_native:
        options.pop("language", None)
    if not options:
        return {}
    for option, value in options.items():
        if protocol.is_native:
            raise ConfigurationError(
                f"{option}={value!r:.80}: the protocol {protocol.name!r} is native and writes no prompt: leave it out"
            )
        if not _takes(protocol, option):
            raise ConfigurationError(
                f"{option}={value!r:.80}: the prompt of the protocol {protocol.name!r} has no {option}: leave it out"
            )
    # The protocol alone knows its words, and refuses others.
    protocol.describe((), **options)
    return options


def _takes(protocol: CallingProtocol, option: str) -> bool:
    parameters = inspect.signature(protocol.describe).parameters
    return option in parameters or any(one.kind is one.VAR_KEYWORD for one in parameters.values())

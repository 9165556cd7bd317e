"""Models' calling formats: from a reply's text to calls, and from calls and results to text. Pure: no I/O, no clock.

`base.py` says what a protocol offers and which limits hold before one parses. ATTP: `attp.py` is the object;
`attp_parse.py` reads a reply, strictly at first, by `attp_document.py`; a damaged one goes to `attp_recover.py`, which
finds the document (`attp_layout.py`) and its values (`attp_values.py`); `attp_prompt.py` writes the system prompt.
"""

from __future__ import annotations

from typing import Any

from toolwire.protocols.anthropic import Anthropic
from toolwire.protocols.attp import Attp
from toolwire.protocols.base import CallingProtocol
from toolwire.protocols.gemini import Gemini
from toolwire.protocols.openai import OpenAi
from toolwire.protocols.openai_responses import OpenAiResponses
from toolwire.vocabulary.errors import ConfigurationError

__all__ = ["get", "names", "recognise"]

# One line each. `recognise` asks them in this order.
_PROTOCOLS: dict[str, CallingProtocol] = {
    "attp": Attp(),
    "openai": OpenAi(),
    "openai-responses": OpenAiResponses(),
    "anthropic": Anthropic(),
    "gemini": Gemini(),
}


def get(name: str) -> CallingProtocol:
    """The protocol of this name.

    Raises:
        ConfigurationError: there is none of that name.
    """
    found = _PROTOCOLS.get(name)
    if found is None:
        raise ConfigurationError(f"there is no protocol {name!r}: write one of {', '.join(map(repr, _PROTOCOLS))}")
    return found


def names() -> tuple[str, ...]:
    """The names of all protocols."""
    return tuple(_PROTOCOLS)


def recognise(reply: Any) -> str | None:
    """The name of the protocol whose format a reply is plainly in; None when it is in none."""
    return next((name for name, protocol in _PROTOCOLS.items() if protocol.recognises(reply)), None)

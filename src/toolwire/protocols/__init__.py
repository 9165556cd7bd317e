"""The calling formats of models: parsing a reply into calls, and rendering calls and results. No I/O and no clock.

`base.py` defines the interface of a protocol and the limits that are checked before parsing.

ATTP: `attp.py` holds the protocol object. `attp_parse.py` parses a reply strictly, with `attp_document.py`. If that
fails, `attp_recover.py` recovers the document (`attp_layout.py`) and its values (`attp_values.py`). `attp_prompt.py`
writes the system prompt.

XML: `xml.py` holds the protocol object. `xml_scan.py` finds calls in text, `xml_call.py` and `xml_element.py` read one
call, and `xml_values.py` converts its values by the tool's schema.

JSON in text: `json_text.py` holds the protocol object. `json_text_layout.py` splits a reply into parts, and
`json_text_calls.py` makes calls from its JSON. `repair.py` reads arguments with `strict_json.py`, then with
`lenient_json.py` if the JSON is malformed.

XML and JSON share `text_parse.py`. It uses `foreign.py` for calls in the formats of other models. `call_shapes.py`
detects an unread call in a reply that looks like an answer.

Providers' own formats: `openai.py`, `openai_responses.py`, `anthropic.py` and `gemini.py` each split a reply into
parts. `native.py` makes calls from the parts, and `native_stream.py` collects them from a stream. `names.py`,
`provider_schema.py`, `strict_schema.py` and `gemini_schema.py` adapt names and schemas to the provider.
"""

from __future__ import annotations

from typing import Any

from toolwire.protocols.anthropic import Anthropic
from toolwire.protocols.attp import Attp
from toolwire.protocols.base import CallingProtocol
from toolwire.protocols.gemini import Gemini
from toolwire.protocols.json_text import JsonText
from toolwire.protocols.openai import OpenAi
from toolwire.protocols.openai_responses import OpenAiResponses
from toolwire.protocols.recognise import recognise_among
from toolwire.protocols.strict_schema import strict_problems
from toolwire.protocols.xml import Xml
from toolwire.vocabulary.errors import ConfigurationError

__all__ = ["get", "names", "recognise", "strict_problems"]

# `recognise` tries them in this order.
_PROTOCOLS: dict[str, CallingProtocol] = {
    "attp": Attp(),
    "xml": Xml(),
    "json": JsonText(),
    "openai": OpenAi(),
    "openai-responses": OpenAiResponses(),
    "anthropic": Anthropic(),
    "gemini": Gemini(),
}


def get(name: str) -> CallingProtocol:
    """Returns the protocol with this name.

    Raises:
        ConfigurationError: No protocol has this name.
    """
    found = _PROTOCOLS.get(name)
    if found is None:
        raise ConfigurationError(f"there is no protocol {name!r}: write one of {', '.join(map(repr, _PROTOCOLS))}")
    return found


def names() -> tuple[str, ...]:
    """Returns the names of all protocols."""
    return tuple(_PROTOCOLS)


def recognise(reply: Any) -> str | None:
    """Returns the name of the protocol that the reply is clearly written in, or None."""
    return recognise_among(_PROTOCOLS, reply)

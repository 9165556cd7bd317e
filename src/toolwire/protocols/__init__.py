"""Models' calling formats: from a reply's text to calls, and from calls and results to text. Pure: no I/O, no clock.

`base.py` says what a protocol offers and which limits hold before one parses. ATTP: `attp.py` is the object;
`attp_parse.py` reads a reply, strictly at first, by `attp_document.py`; a damaged one goes to `attp_recover.py`, which
finds the document (`attp_layout.py`) and its values (`attp_values.py`); `attp_prompt.py` writes the system prompt.
XML: `xml.py` is the object; `xml_scan.py` finds calls among text, `xml_call.py` and `xml_element.py` read one,
`xml_values.py` converts its values by the tool's schema.
JSON in text: `json_text.py` is the object; `json_text_layout.py` takes a reply apart, `json_text_calls.py` makes calls
of its JSON, `repair.py` reads arguments: `strict_json.py` at first, `lenient_json.py` where the model slipped.
`text_parse.py` completes both: `foreign.py` reads calls in other models' wrappings, and `call_shapes.py` says of an
answer whether it is a call that was not read.
The providers' own formats (`openai.py`, `openai_responses.py`, `anthropic.py`, `gemini.py`) each take a reply apart;
`native.py` makes calls of the parts, `native_stream.py` gathers them piece by piece, `names.py`, `provider_schema.py`,
`strict_schema.py` and `gemini_schema.py` say what a provider takes of names and schemas.
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

# One line each. `recognise` asks them in this order.
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
    return recognise_among(_PROTOCOLS, reply)

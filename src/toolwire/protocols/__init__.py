"""The calling formats of models: parsing a reply into calls, and rendering calls and results. No I/O and no clock.

`base.py` defines the interface of a protocol and the limits that are checked before parsing. `text_formats.py` makes
the text protocols of the parts in `attp/`, `xml/` and `json_text/`, and `text/` has what they share. `native/` has one
module for each provider. `reading/` parses JSON, TOML and the values of tags, and `grammar/` has the grammars.

`foreign/` reads calls of other formats. `text_parse.py` there reads calls of other formats in XML and
JSON replies, with `foreign_calls.py` for the formats of other models. `call_shapes.py` detects an unread call in a
reply that looks like an answer, and `leftovers.py` a part of a call beside those that were read. `text_calls.py` reads
calls in the text of a native reply. `tool_names.py` maps tool names to names that a provider accepts.
"""

from __future__ import annotations

from typing import Any, cast

from toolwire.protocols.base import CallingProtocol, check_option
from toolwire.protocols.native.anthropic import Anthropic
from toolwire.protocols.native.gemini import Gemini
from toolwire.protocols.native.openai import OpenAi
from toolwire.protocols.native.openai_responses import OpenAiResponses
from toolwire.protocols.native.strict_schema import strict_problems
from toolwire.protocols.streaming import ArgumentsDelta, CallEnded, CallStarted, ReplyStream, StreamEvent, TextDelta
from toolwire.protocols.text_formats import ATTP, JSON_TEXT, XML
from toolwire.protocols.xml.element import CallTag
from toolwire.vocabulary.errors import ConfigurationError

__all__ = [
    "ArgumentsDelta",
    "CallEnded",
    "CallStarted",
    "CallingProtocol",
    "ReplyStream",
    "StreamEvent",
    "TextDelta",
    "get",
    "names",
    "recognise",
    "strict_problems",
]

# `recognise` tries them in this order.
_PROTOCOLS: dict[str, CallingProtocol] = {
    "attp": ATTP,
    "xml": XML["tool_call"],
    "json": JSON_TEXT,
    "openai": OpenAi(),
    "openai-responses": OpenAiResponses(),
    "anthropic": Anthropic(),
    "gemini": Gemini(),
}


def get(name: str, *, tag: CallTag | None = None) -> CallingProtocol:
    """Returns the protocol with this name: one of `names()`, such as "xml" or "anthropic".

    `tag` is the name of the element around a call in the prompt, the examples and the grammar of `xml`: "tool_call"
    (None) or "call". Replies with either are read. Take "call" for a model whose tokenizer has `<tool_call>` as a
    special token: it may not be able to write it.

    Raises:
        ConfigurationError: No protocol has this name or this tag.
    """
    found = _PROTOCOLS.get(name) if isinstance(cast("object", name), str) else None
    if found is None:
        raise ConfigurationError(f"there is no protocol {name!r}: write one of {', '.join(map(repr, _PROTOCOLS))}")
    if tag is None:
        return found
    if name != "xml":
        raise ConfigurationError(f"get({name!r}, tag={tag!r:.80}): only the protocol 'xml' has a tag: leave it out")
    check_option("tag", tag, XML)
    return XML[tag]


def names() -> tuple[str, ...]:
    """Returns the names of all protocols."""
    return tuple(_PROTOCOLS)


def recognise(reply: Any) -> str | None:
    """Returns the name of the protocol that the reply is clearly written in, or None.

    A value in one format can contain text in another. If several protocols recognise the reply, the outermost one is
    chosen. Its calls leave no text that another protocol would recognise.
    """
    found = [name for name, protocol in _PROTOCOLS.items() if protocol.recognises(reply)]
    if len(found) < 2:
        return found[0] if found else None
    # ATTP is first. It finds its document anywhere and takes the rest for prose, so the others are tried before it.
    for name in reversed(found):
        read = _PROTOCOLS[name].parse(reply)
        is_around = any(_PROTOCOLS[other].recognises(read.text) for other in found if other != name)
        if (read.calls or read.failure is not None) and not is_around:
            return name
    return found[0]

"""An ATTP reply, read: as strict TOML first, and repaired only if that fails."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable
from typing import Any

from toolwire.protocols.attp_document import Source, reply_of
from toolwire.protocols.attp_layout import STRUCTURE, find_layout, without_thinking
from toolwire.protocols.attp_recover import recover
from toolwire.protocols.base import Refusal
from toolwire.protocols.call_shapes import find_bracket, unquoted
from toolwire.protocols.incoming import read_incoming, text_given
from toolwire.protocols.json_text_calls import KnownTools, known_tools
from toolwire.protocols.text_parse import refuse_call_shape
from toolwire.protocols.toml_limits import load_toml
from toolwire.vocabulary.calls import Reply

_SIGN = re.compile(
    r"""
      </?[A-Za-z|｜][^<>\n]*+(?:>|\Z) | ^[ \t]*+~{3,}+ | ``` | functools\[ | ^[ \t*]*+Action[ ]Input\b
    | ^[ \t]*+["']?(?:thought|status|target|code|message)["']?[ \t]*+=
    | ^[ \t]*+["']?(?:status|code)["']?[ \t]*+:[ \t]*+["'|]
    | ["“][\w.\- ]{1,64}+["”][ \t]*+[:：] | \[+[ \t]*+tool[ _-]?calls?\b | \b__result__\b
    """,
    re.VERBOSE | re.MULTILINE | re.IGNORECASE,
)
"""A tag, a key or a fence: prose with none of them, and with no tool's name before a bracket, is an answer."""

_BEGUN = ("thought =", "[tool_call]", "```toml")
"""Beginnings of a document: a reply that is a part of one was cut off."""

_DOCUMENT = "Write one TOML document: `thought`, then [tool_call] with status and code."


def parse_attp(reply: Any, tools: Iterable[Any] = ()) -> Reply:
    """What the reply asks for: one program, a failure, an answer in plain prose, or nothing with the reasons why.

    Raises:
        ConfigurationError: the host gave something that is not text.
    """
    text = text_given(reply, "attp")
    try:
        return _read(text, known_tools(tools))
    except Refusal as refusal:
        return Reply(text=refusal.text, problems=(refusal.problem,))


def _read(reply: str | bytes, known: KnownTools) -> Reply:
    incoming = read_incoming(reply)
    text = incoming.text
    raw = reply if isinstance(reply, str) else text
    try:
        document = load_toml(text)
    except tomllib.TOMLDecodeError as error:
        return _answer(text, known) or recover(text, raw=raw, problems=incoming.problems, error=error)
    except Refusal:
        find_layout(text)  # text without a document is refused as that, whatever its size
        raise
    # Headings of Markdown are comments of TOML.
    answer = None if document else _answer(text, known)
    return answer or reply_of(document, Source(raw=raw, text=text, problems=incoming.problems))


def _answer(text: str, known: KnownTools) -> Reply | None:
    """The reply where it is plain prose, without any sign of a call or of a document; None for any other.

    Raises:
        Refusal: it is all thinking, or holds the shape of a call that no program makes.
    """
    said = without_thinking(text)[0]
    if STRUCTURE.search(said):
        return None
    refuse_call_shape(said, known, _DOCUMENT)
    plain, prose = unquoted(said), said.strip()
    if not plain.strip() or any(begun.startswith(prose.lower()) for begun in _BEGUN) or _SIGN.search(plain):
        return None
    return None if find_bracket(plain, known) is not None else Reply(text=prose)

"""The ATTP parser. It tries strict TOML first and repairs a reply only if that fails."""

from __future__ import annotations

import re
import tomllib

from toolwire.protocols.attp.document import Source, reply_of
from toolwire.protocols.attp.layout import STRUCTURE, find_layout, without_thinking
from toolwire.protocols.attp.recover import recover
from toolwire.protocols.attp.render import render_attp
from toolwire.protocols.base import Refusal
from toolwire.protocols.foreign.call_shapes import blank_quotations, find_bracket
from toolwire.protocols.foreign.text_parse import refuse_call_shape, refuse_with_right_form
from toolwire.protocols.reading.incoming import read_incoming
from toolwire.protocols.reading.toml import load_toml
from toolwire.protocols.tool_imports import with_tool_imports
from toolwire.protocols.tool_names import KnownTools
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
"""Tags, keys and fences of a call. Prose without them, and without a tool's name before a bracket, is an answer."""

_BEGUN = ("thought =", "[tool_call]", "```toml")
"""The beginnings of a document. A reply that is a prefix of one was cut off."""

_DOCUMENT = "Write one TOML document: `thought`, then [tool_call] with status and code."


def read_attp(reply: str | bytes, known: KnownTools) -> Reply:
    """Reads a reply as one program, a failure, an answer in plain prose, or the reasons for a refusal."""
    try:
        return with_tool_imports(_read_reply(reply, known), known)
    except Refusal as refusal:
        return refusal.reply


def _read_reply(reply: str | bytes, known: KnownTools) -> Reply:
    incoming = read_incoming(reply)
    text = incoming.text
    raw = reply if isinstance(reply, str) else text
    try:
        document = load_toml(text)
    except tomllib.TOMLDecodeError as error:
        answer = _read_prose(text, known)
        if answer is not None:
            return answer
        try:
            return recover(text, raw=raw, problems=incoming.problems, error=error)
        except Refusal:
            refuse_with_right_form(text, known, render_attp)
            raise
    except Refusal:
        find_layout(text)  # raises the better error for a text without a document, whatever its size
        raise
    # A Markdown heading is a TOML comment, so prose can parse as an empty document.
    answer = None if document else _read_prose(text, known)
    return answer or reply_of(document, Source(raw=raw, text=text, problems=incoming.problems))


def _read_prose(text: str, known: KnownTools) -> Reply | None:
    """Returns the reply if it is plain prose without any sign of a call or a document. None for any other reply.

    Raises:
        Refusal: The reply is all thinking, or contains the shape of a call in another format.
    """
    said = without_thinking(text)[0]
    if STRUCTURE.search(said):
        return None
    refuse_call_shape(said, known, _DOCUMENT, render_attp)
    plain, prose = blank_quotations(said), said.strip()
    if not plain.strip() or any(begun.startswith(prose.lower()) for begun in _BEGUN) or _SIGN.search(plain):
        return None
    return None if find_bracket(plain, known) is not None else Reply(text=prose)

"""The marks of XML in a reply: tags, CDATA and references, and where the content of a tag ends."""

from __future__ import annotations

import html
import json
import re
from collections.abc import Set as AbstractSet

from toolwire.protocols.base import DEPTH_LIMIT

CDATA = "<![CDATA["
CDATA_END = "]]>"
_NAME = r"[^\W\d][\w.\-]*+"
OPENING = re.compile(rf"<(?P<name>{_NAME})(?P<attributes>[\s/][^<>]*+)?+>")
CLOSING = re.compile(rf"</({_NAME})\s*+>")
MARK = re.compile(r"<!\[CDATA\[|<!--|</?[^\W\d]")
_SECTION = re.compile(r"<!\[CDATA\[(.*?)\]\]>", re.DOTALL)
_ATTRIBUTE = re.compile(r"""([\w.:\-]+)\s*+=\s*+("(?:[^"\\]|\\.)*+"|'[^']*+')""", re.DOTALL)
_REFERENCE = re.compile(r"&(?:(lt|gt|amp|quot|apos)|#([0-9]{1,7})|#x([0-9a-fA-F]{1,6}));")
_NAMED_CHARACTERS = {"lt": "<", "gt": ">", "amp": "&", "quot": '"', "apos": "'"}
_CHARACTER = re.compile("[\t\n\r -\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
"""A character that XML allows."""


def expand_references(text: str) -> str | None:
    """Returns text outside of CDATA with the five entities and character references replaced by their characters.

    None if the text is not well-formed XML: a bare `&`, an unknown entity, a character that XML forbids, or `]]>`.
    """
    if CDATA_END in text:
        return None
    pieces, position = list[str](), 0
    while (start := text.find("&", position)) >= 0:
        reference = _REFERENCE.match(text, start)
        character = _character(reference) if reference else ""
        if reference is None or not character:
            return None
        pieces += [text[position:start], character]
        position = reference.end()
    return "".join([*pieces, text[position:]])


def _character(reference: re.Match[str]) -> str:
    """Returns the character of a reference; empty if XML forbids it."""
    named, decimal, hexadecimal = reference.groups()
    if named:
        return _NAMED_CHARACTERS[named]
    number = int(decimal) if decimal else int(hexadecimal, 16)
    character = chr(number) if number < 0x110000 else ""
    return character if _CHARACTER.fullmatch(character) else ""


def is_empty(opening: re.Match[str]) -> bool:
    """True for an empty-element tag such as `<limit/>`."""
    return (opening["attributes"] or "").endswith("/")


def attributes(opening: re.Match[str]) -> dict[str, str]:
    return {name: _attribute(value) for name, value in _ATTRIBUTE.findall(opening["attributes"] or "")}


def stray_attribute(written: str | None, allowed: AbstractSet[str]) -> str:
    """Returns the first attribute of a tag that is not one of these, or text that is none. Empty without one.

    `written` is what stands in the tag behind its name.
    """
    given = (written or "").strip(" \t\r\n/")
    stray = next((name for name, _ in _ATTRIBUTE.findall(given) if name not in allowed), "")
    return stray or _ATTRIBUTE.sub("", given).strip()


def _attribute(quoted: str) -> str:
    """Returns an attribute's text. Names that need escapes use those of JSON."""
    if quoted[0] == '"' and "\\" in quoted:
        try:
            return str(json.loads(quoted))
        except ValueError:
            pass
    return quoted[1:-1]


def content_end(text: str, position: int, tag: str) -> tuple[int, int] | None:
    """Returns the ends of the content at `position` and of the `</tag>` that closes it. None if its tags do not match.

    One pass: CDATA and comments are skipped.
    """
    is_open = [tag]
    while found := MARK.search(text, position):
        mark = found[0]
        if mark in (CDATA, "<!--"):
            closing = CDATA_END if mark == CDATA else "-->"
            end = text.find(closing, found.end())
            if end < 0:
                return None
            position = end + len(closing)
        elif mark.startswith("</"):
            closed = CLOSING.match(text, found.start())
            if closed is None or closed[1] != is_open.pop():
                return None
            if not is_open:
                return found.start(), closed.end()
            position = closed.end()
        else:
            opened = OPENING.match(text, found.start())
            if opened is None or len(is_open) > DEPTH_LIMIT:
                return None
            if not is_empty(opened):
                is_open.append(opened["name"])
            position = opened.end()
    return None


def without_sections(text: str) -> str:
    """Returns the same XML without CDATA, which escapes replace."""
    return _SECTION.sub(lambda found: html.escape(found[1], quote=False), text)

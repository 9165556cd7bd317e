"""One name for a tool in every provider's API, and the way back.

Providers take letters, digits, `_` and `-`, up to 64 of them, with a letter or `_` in front. Any other character is
written as a word between underscores: `fs.read` becomes `fs_dot_read`, `数` becomes `_x6570_`. An underscore that would
read like the beginning of such a word is written as `_x5f_`, so that no two names become one and each can be read back
without knowing the tools. Only a name that grows too long is cut, and told apart by a digest.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable
from typing import Any

from toolwire.definition.from_function import tool_of
from toolwire.vocabulary.errors import ConfigurationError

PROVIDER_NAME_LIMIT = 64
"""Characters of a tool's or parameter's name that every provider takes."""

_WORDS = {".": "dot", "/": "slash", ":": "colon", " ": "space"}
_CHARACTERS = {word: character for character, word in _WORDS.items()}
_WORD = r"(?:dot|slash|colon|space|x[0-9a-f]{1,6})"
_ESCAPE = re.compile(rf"_({_WORD})_")
# An underscore before such a word is escaped whenever one will stand behind it, and every escape begins with one.
_IN_NAMES = re.compile(rf"_(?={_WORD}[^A-Za-z0-9-])|[^A-Za-z0-9_-]|\A[0-9-]")
_IN_PROPERTIES = re.compile(rf"_(?={_WORD}[^A-Za-z0-9])|[^A-Za-z0-9_]|\A[0-9]")
_CUT = re.compile(r"_h[0-9a-f]{12}\Z")


class NameMap:
    """The names of some tools, both ways."""

    def __init__(self, names: Iterable[str]) -> None:
        """Raises:
        ConfigurationError: two names that a provider could not tell apart.
        """
        self._ours: dict[str, str] = {}
        for name in names:
            known = self._ours.setdefault(provider_name(name), name)
            if known != name:
                raise ConfigurationError(
                    f"a provider could not tell {known!r} and {name!r} apart: register one of them under another name"
                )

    def to_provider(self, name: str) -> str:
        """The name as a provider takes it, whether or not it is one of these tools'."""
        return provider_name(name)

    def from_provider(self, name: str) -> str:
        """The tool's own name. A name that is none of these tools' is read back as far as it can be."""
        return self._ours.get(name) or tool_name(name)


def provider_names(tools: Iterable[Any]) -> NameMap:
    """The names of these tools, both ways.

    Raises:
        ConfigurationError: as `NameMap`.
    """
    return NameMap(tool_of(tool).name for tool in tools)


def provider_name(name: str) -> str:
    """A tool's name as every provider takes it; one that they take already stays as it is."""
    return _written(name, _IN_NAMES)


def property_name(name: str) -> str:
    """A parameter's name as every provider takes it: the same, but without `-`."""
    return _written(name, _IN_PROPERTIES)


def tool_name(written: str) -> str:
    """The name that `provider_name` was given; one that it cut comes back as it is."""
    return written if _CUT.search(written) else _ESCAPE.sub(_unescape, written)


def _written(name: str, escaped: re.Pattern[str]) -> str:
    written = escaped.sub(_escape, name)
    if len(written) <= PROVIDER_NAME_LIMIT and not _CUT.search(written):
        return written
    digest = hashlib.sha256(name.encode("utf-8", "surrogatepass")).hexdigest()[:12]
    return f"{written[: PROVIDER_NAME_LIMIT - 14]}_h{digest}"


def _escape(found: re.Match[str]) -> str:
    character = found[0]
    return f"_{_WORDS.get(character) or f'x{ord(character):x}'}_"


def _unescape(found: re.Match[str]) -> str:
    word = found[1]
    if word in _CHARACTERS:
        return _CHARACTERS[word]
    code = int(word[1:], 16)
    is_character = code < 0x110000 and not 0xD800 <= code < 0xE000
    return chr(code) if is_character else found[0]

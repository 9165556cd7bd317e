"""Tool names that every provider's API accepts, and the mapping back.

A provider accepts letters, digits, `_` and `-`, at most 64 characters, with a letter or `_` first. Any other character
becomes a word between underscores: `fs.read` becomes `fs_dot_read`, `数` becomes `_x6570_`. An underscore that would
look like the start of such a word becomes `_x5f_`. Two names therefore never become equal, and each can be decoded
without knowing the tools. Only a name that grows too long is cut; a digest at its end keeps it unique.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from toolwire.definition.from_function import tool_of
from toolwire.definition.naming import program_name
from toolwire.definition.root_fields import with_root_fields
from toolwire.protocols.base import Refusal
from toolwire.vocabulary.errors import ConfigurationError, DefinitionError

PROVIDER_NAME_LIMIT = 64
"""Maximum number of characters that every provider accepts in the name of a tool or parameter."""

_WORDS = {".": "dot", "/": "slash", ":": "colon", " ": "space"}
_CHARACTERS = {word: character for character, word in _WORDS.items()}
_WORD = r"(?:dot|slash|colon|space|x[0-9a-f]{1,6})"
_ESCAPE = re.compile(rf"_({_WORD})_")
# The underscore before such a word is escaped if another underscore will follow. Every escape begins with one.
_IN_NAMES = re.compile(rf"_(?={_WORD}[^A-Za-z0-9-])|[^A-Za-z0-9_-]|\A[0-9-]")
_IN_PROPERTIES = re.compile(rf"_(?={_WORD}[^A-Za-z0-9])|[^A-Za-z0-9_]|\A[0-9]")
_NAMESPACES = ("functions.", "default_api.")
"""Where the prompts of OpenAI's and Gemini's models place the tools. The models then write it before a name."""
_INDEX = re.compile(r":[0-9]{1,4}\Z")
"""The number of a call, which Kimi's models write behind the name: `functions.weather:0`."""
_CUT = re.compile(r"_h[0-9a-f]{12}\Z")


class NameMap:
    """The mapping from a provider's names back to the names of a set of tools."""

    def __init__(self, names: Iterable[str]) -> None:
        """Builds the mapping.

        Raises:
            ConfigurationError: A provider could not distinguish two of the names.
        """
        self._ours: dict[str, str] = {}
        for name in names:
            known = self._ours.setdefault(provider_name(name), name)
            if known != name:
                raise ConfigurationError(
                    f"a provider could not tell {known!r} and {name!r} apart: register one of them under another name"
                )
        self._names = dict.fromkeys(self._ours.values())

    @cached_property
    def spellings(self) -> Mapping[str, Sequence[str]]:
        """Tool names by their spelling in programs."""
        return by_spelling(self._names)

    def from_provider(self, name: str) -> str:
        """Returns the tool's own name, also in another spelling. Any other name is decoded as far as possible."""
        decoded = self._ours.get(name) or tool_name(name)
        return decoded if decoded in self._names else _meant(name, self._ours, self._names, self.spellings) or decoded


def provider_name(name: str) -> str:
    """Returns a tool name in a form that every provider accepts. An acceptable name stays unchanged."""
    return _written(name, _IN_NAMES)


def property_name(name: str) -> str:
    """Returns a parameter name in a form that every provider accepts. Unlike a tool name it has no `-`."""
    return _written(name, _IN_PROPERTIES)


def tool_name(written: str) -> str:
    """Returns the tool name that `provider_name` encoded. A name that was cut is returned unchanged."""
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


@dataclass(frozen=True)
class KnownTools:
    """The facts about the tools that a reader needs."""

    schemas: Mapping[str, Mapping[str, Any]]
    """Input schema by tool name; empty if the reader was given no tools."""
    written: Mapping[str, str]
    """Tool name by its name in a provider's API. Models that know the provider's form also write it in text."""

    def name(self, name: str) -> str:
        """Returns the tool that a written name means. An unknown or ambiguous name is returned unchanged."""
        if name in self.schemas:
            return name
        return _meant(name, self.written, self.schemas, self.spellings) or name

    @cached_property
    def spellings(self) -> Mapping[str, Sequence[str]]:
        """Tool names by their spelling in programs. Models also write it, and mix `.`, `/` and `_`."""
        return by_spelling(self.schemas)


def by_spelling(names: Iterable[str]) -> dict[str, list[str]]:
    """Returns the names by their spelling in programs: `fs.read`, `fs/read` and `fs_read` share one."""
    found: dict[str, list[str]] = {}
    for name in names:
        found.setdefault(program_name(name), []).append(name)
    return found


def _meant(
    written: str, ours: Mapping[str, str], names: Collection[str], spellings: Mapping[str, Sequence[str]]
) -> str:
    """Returns the only tool that a name can mean that no tool has; empty without one. `ours` has providers' names.

    Small models leave out the last part of a name: `weather` for `weather.get`. Its only tool is meant.
    """
    found = _spelled_tool(written, ours, names, spellings)
    bare = _INDEX.sub("", written)
    for namespace in _NAMESPACES:
        bare = bare.removeprefix(namespace)
    if not found and bare != written:
        found = _spelled_tool(bare, ours, names, spellings)
    if found or not written:
        return found
    decoded = tool_name(written)
    members = [name for name in names if name.startswith((f"{decoded}.", f"{decoded}/", f"{decoded}:"))]
    return members[0] if len(members) == 1 else ""


def _spelled_tool(
    written: str, ours: Mapping[str, str], names: Collection[str], spellings: Mapping[str, Sequence[str]]
) -> str:
    decoded = ours.get(written) or tool_name(written)
    return decoded if decoded in names else _spelled(decoded, spellings)


def _spelled(written: str, names: Mapping[str, Sequence[str]]) -> str:
    """Returns the only tool of the same spelling. Empty without exactly one."""
    try:
        found = names.get(program_name(written), ())
    except DefinitionError:
        return ""
    return found[0] if len(found) == 1 else ""


def refuse_ambiguous(name: str, spellings: Mapping[str, Sequence[str]]) -> None:
    """Refuses a name that several tools share as a spelling, unless a tool has exactly this name.

    Raises:
        Refusal: It names these tools.
    """
    try:
        found = spellings.get(program_name(name), ())
    except DefinitionError:
        return
    if len(found) > 1 and name not in found:
        raise Refusal(f"{name!r} may mean {' or '.join(map(repr, found))}. Write the name of one of them exactly.")


def known_tools(tools: Iterable[Any]) -> KnownTools:
    """Returns the facts about these tools that a reader needs."""
    schemas = {tool.name: with_root_fields(tool.input_schema) for tool in map(tool_of, tools)}
    return KnownTools(schemas, {provider_name(name): name for name in schemas})

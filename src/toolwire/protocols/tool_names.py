"""Tool names that every provider's API accepts, and the mapping back.

A provider accepts letters, digits, `_` and `-`, at most 64 characters, with a letter or `_` first. Any other character
becomes a word between underscores: `fs.read` becomes `fs_dot_read`, `数` becomes `_x6570_`. An underscore that would
look like the start of such a word becomes `_x5f_`. Two names therefore never become equal, and each can be decoded
without knowing the tools. Only a name that grows too long is cut; a digest at its end keeps it unique.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import cached_property, lru_cache
from operator import methodcaller
from typing import Any, cast

from toolwire.definition.derived import schema_with_root_fields
from toolwire.definition.from_function import name_of, tool_of
from toolwire.definition.naming import NAME_CACHE, NAME_LIMIT, program_name
from toolwire.definition.tool import Tool
from toolwire.protocols.base import Refusal
from toolwire.vocabulary.errors import ConfigurationError, DefinitionError
from toolwire.vocabulary.texts.lone_surrogates import utf8_bytes

PROVIDER_NAME_LIMIT = 64
"""Maximum number of characters that every provider accepts in the name of a tool or parameter."""

_SET_CACHE = 64
"""Number of sets of tools whose names are kept in all forms. Each reply with prose is searched for them."""

_WORDS = {".": "dot", "/": "slash", ":": "colon", " ": "space"}
_CHARACTERS = {word: character for character, word in _WORDS.items()}
_WORD = r"(?:dot|slash|colon|space|x[0-9a-f]{1,6})"
_ESCAPE = re.compile(rf"_({_WORD})_")
# The underscore before such a word is escaped if another underscore will follow. Every escape begins with one.
_IN_NAMES = re.compile(rf"_(?={_WORD}[^A-Za-z0-9-])|[^A-Za-z0-9_-]|\A[0-9-]")
_IN_PROPERTIES = re.compile(rf"_(?={_WORD}[^A-Za-z0-9])|[^A-Za-z0-9_]|\A[0-9]")
_NAMESPACE = re.compile(r"\A(?:functions\.|default_api[.:])")
"""Where the prompts of OpenAI's and Gemini's models place the tools. The models then write it before a name."""
_INDEX = re.compile(r":[0-9]{1,4}\Z")
"""The number of a call, which Kimi's models write behind the name: `functions.weather:0`."""
_TOOL = methodcaller("__tool__")
_CUT = re.compile(r"_h[0-9a-f]{12}\Z")


class NameMap:
    """The mapping from a provider's names back to the names of a set of tools."""

    def __init__(self, names: Collection[str]) -> None:
        self._names = names

    def check(self) -> None:
        """Checks that a provider can distinguish all names.

        Raises:
            ConfigurationError: It could not distinguish two of them.
        """
        for known, name, *_ in (names for names in self._names_by_form.values() if len(names) > 1):
            raise ConfigurationError(
                f"a provider could not tell {known!r} and {name!r} apart: register one of them under another name"
            )

    @cached_property
    def _names_by_form(self) -> Mapping[str, Sequence[str]]:
        """The names by their form for providers, made for the first name that has another form there."""
        return _names_by(provider_name, dict.fromkeys(self._names))

    @cached_property
    def _ours(self) -> Mapping[str, str]:
        """The names by their form for providers, without those that share one."""
        return {written: names[0] for written, names in self._names_by_form.items() if len(names) == 1}

    @cached_property
    def spellings(self) -> Mapping[str, Sequence[str]]:
        """Tool names by their spelling in programs, which models also write: `fs.read` and `fs/read` share one."""
        return _names_by(program_name, self._names)

    def from_provider(self, name: str) -> str:
        """Returns the tool's own name, also in another spelling. Any other name is decoded as far as possible."""
        if name in self._names and provider_name(name) == name:
            return name
        decoded = self._ours.get(name) or tool_name(name)
        return decoded if decoded in self._names else self.find_only(name) or decoded

    def find_only(self, written: str) -> str:
        """Returns the only tool that a name can mean that no tool has; empty without one.

        Small models leave out the last part of a name: `weather` for `weather.get`. Its only tool is meant.
        """
        found = _readings(written, self.spellings, self._ours)
        if not found and written:
            decoded = tool_name(written)
            found = [name for name in self._names if name.startswith((f"{decoded}.", f"{decoded}/", f"{decoded}:"))]
        return found[0] if len(found) == 1 else ""


def provider_name(name: str) -> str:
    """Returns a tool name in a form that every provider accepts. An acceptable name stays unchanged."""
    # A model may write a long name, which must not take a place in the cache.
    return _provider_name(name) if len(name) <= NAME_LIMIT else _escape_name(name, _IN_NAMES)


@lru_cache(maxsize=NAME_CACHE)
def _provider_name(name: str) -> str:
    return _escape_name(name, _IN_NAMES)


def property_name(name: str) -> str:
    """Returns a parameter name in a form that every provider accepts. Unlike a tool name it has no `-`."""
    return _escape_name(name, _IN_PROPERTIES)


def tool_name(written: str) -> str:
    """Returns the tool name that `provider_name` encoded. A name that was cut is returned unchanged."""
    return written if _CUT.search(written) else _ESCAPE.sub(_unescape, written)


def _escape_name(name: str, escaped: re.Pattern[str]) -> str:
    written = escaped.sub(_escape, name)
    if len(written) <= PROVIDER_NAME_LIMIT and not _CUT.search(written):
        return written
    digest = hashlib.sha256(utf8_bytes(name)).hexdigest()[:12]
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


class KnownTools(Collection[Tool]):
    """A set of tools, with the facts about them that a reader needs. A fact is made when a reader asks for it."""

    def __init__(
        self, tools: Iterable[Any] | Mapping[str, Tool], *, names: Callable[[], Iterable[str]] | None = None
    ) -> None:
        """Takes tools, or a mapping of them by name in which a name has the same tool each time.

        `names` returns the names of the mapping and perhaps others, if that is cheaper than to list the mapping.
        """
        self._names = names
        self._tools: Mapping[str, Tool] | tuple[Any, ...]
        self._tools = cast("Mapping[str, Tool]", tools) if isinstance(tools, Mapping) else tuple(tools)

    @cached_property
    def by_name(self) -> Mapping[str, Tool]:
        """The tools by name.

        Raises:
            DefinitionError: One of the objects is not a tool.
        """
        return self._tools if isinstance(self._tools, Mapping) else _tools_by_name(self._tools)

    def is_named_in(self, text: str) -> bool:
        """True if the text contains the name of one of the tools in any form."""
        names = _forms(tuple(self.by_name if self._names is None else self._names()))
        return any(name in self.by_name for form in names if form in text for name in names[form])

    @cached_property
    def names(self) -> NameMap:
        """The mapping from a provider's names."""
        return NameMap(self.by_name)

    @cached_property
    def schemas(self) -> Mapping[str, Mapping[str, Any]]:
        """Input schema by tool name; empty if the reader was given no tools."""
        return _Schemas(self.by_name)

    def __iter__(self) -> Iterator[Tool]:
        return iter(self.by_name.values())

    def __len__(self) -> int:
        return len(self.by_name)

    def __bool__(self) -> bool:
        return bool(self.by_name)

    def __contains__(self, tool: object) -> bool:
        return isinstance(tool, Tool) and self.by_name.get(tool.name) is tool

    def name(self, name: str) -> str:
        """Returns the tool that a written name means. An unknown or ambiguous name is returned unchanged."""
        if name in self.by_name:
            return name
        return self.names.find_only(name) or name

    def find_name(self, written: str | None) -> str:
        """Returns the tool that a written name means, also with more behind a colon. Empty if none fits."""
        if not written:
            return ""
        for name in (written, written.partition(":")[0]):
            if self.name(name) in self.schemas:
                return self.name(name)
        last = written.rpartition(".")
        return self.find_name(last[0]) if last[2] == "call" else ""

    def schema(self, name: str) -> Mapping[str, Any] | None:
        """Returns the input schema of the tool that a written name means. None if the tool is unknown."""
        return self.schemas.get(self.name(name))

    def properties(self, tool: str) -> Mapping[str, Any]:
        """Returns the schemas of a tool's parameters by name. Empty if the tool is unknown."""
        return cast("Mapping[str, Any]", self.schemas.get(tool, {}).get("properties") or {})


@lru_cache(maxsize=_SET_CACHE)
def _forms(names: tuple[str, ...]) -> Mapping[str, Sequence[str]]:
    """Returns the names by the forms in which a model may write them."""
    found: dict[str, list[str]] = {}
    for name in names:
        for form in {name, provider_name(name), program_name(name)}:
            found.setdefault(form, []).append(name)
    return found


def _names_by(write: Callable[[str], str], names: Iterable[str]) -> dict[str, list[str]]:
    """Returns the names by the form that `write` gives them."""
    found: dict[str, list[str]] = {}
    for name in names:
        found.setdefault(write(name), []).append(name)
    return found


def _readings(written: str, spellings: Mapping[str, Sequence[str]], ours: Mapping[str, str]) -> Sequence[str]:
    """Returns all tools that a name can mean: as it is and without its number, each with and without its namespace."""
    found: list[str] = []
    for whole in (written, _INDEX.sub("", written)):
        bare = _NAMESPACE.sub("", whole)
        # A tool of exactly this name has the namespace in its own name.
        found += _exact(whole, spellings, ours) or [
            *_alike(tool_name(whole), spellings),
            *(_exact(bare, spellings, ours) or _alike(tool_name(bare), spellings)),
        ]
    return tuple(dict.fromkeys(found))


def _exact(written: str, spellings: Mapping[str, Sequence[str]], ours: Mapping[str, str]) -> list[str]:
    """Returns the tools of exactly this name, or with this name for providers."""
    decoded = ours.get(written) or tool_name(written)
    return [name for name in dict.fromkeys((written, decoded)) if name in _alike(name, spellings)]


def _alike(name: str, spellings: Mapping[str, Sequence[str]]) -> Sequence[str]:
    """Returns the tools whose names have the same spelling in programs."""
    try:
        return spellings.get(program_name(name), ())
    except DefinitionError:
        return ()


def refuse_ambiguous(name: str, spellings: Mapping[str, Sequence[str]]) -> None:
    """Refuses a name that can mean several tools, unless a tool has exactly this name.

    Raises:
        Refusal: It names these tools.
    """
    found = _readings(name, spellings, {})
    if len(found) > 1 and name not in found:
        raise Refusal(f"{name!r} may mean {' or '.join(map(repr, found))}. Write the name of one of them exactly.")


class _Schemas(Mapping[str, Mapping[str, Any]]):
    """The schemas of tools with the fields of their roots. Only the schema of a tool that is asked for is made."""

    def __init__(self, tools: Mapping[str, Tool]) -> None:
        self._tools = tools

    def __getitem__(self, name: str) -> Mapping[str, Any]:
        return schema_with_root_fields(self._tools[name])

    def __contains__(self, name: object) -> bool:
        return name in self._tools

    def __iter__(self) -> Iterator[str]:
        return iter(self._tools)

    def __len__(self) -> int:
        return len(self._tools)

    def __bool__(self) -> bool:
        return bool(self._tools)


def as_known_tools(tools: Iterable[Any]) -> KnownTools:
    """Returns the facts about these tools that a reader needs. A `KnownTools` is returned unchanged."""
    return tools if isinstance(tools, KnownTools) else KnownTools(tools)


def _tools_by_name(values: Iterable[Any]) -> Mapping[str, Tool]:
    """Returns the tools of these values by name. A function becomes a tool when it is looked up.

    Raises:
        DefinitionError: One of the values is not a tool.
    """
    values = tuple(values)
    try:
        return {tool.name: tool for tool in map(_TOOL, values)}
    except (AttributeError, TypeError):
        # At least one of them is a function.
        return _ToolsByName(values)


class _ToolsByName(Mapping[str, Tool]):
    def __init__(self, values: Iterable[Any]) -> None:
        self._values = dict(_named(value) for value in values)

    def __getitem__(self, name: str) -> Tool:
        value = self._values[name]
        if not isinstance(value, Tool):
            value = self._values[name] = tool_of(value)
        return value

    def __contains__(self, name: object) -> bool:
        return name in self._values

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)


def _named(value: Any) -> tuple[str, Any]:
    if callable(value) and not hasattr(value, "__tool__") and not isinstance(value, type):
        return name_of(value), value
    tool = tool_of(value)
    return tool.name, tool

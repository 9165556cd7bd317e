"""Texts of outside authors, made safe for models: one bounded paragraph without the marks of a prompt's structure.

Models may then read less than the schema that checks arguments: checks use the schema as given.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any, cast

from toolwire.vocabulary.errors import DefinitionError
from toolwire.vocabulary.texts.counting import count_of
from toolwire.vocabulary.texts.cuts import fit_text
from toolwire.vocabulary.texts.invisible import visible_text

_LOG = logging.getLogger("toolwire.tools")

OUTSIDE_TEXT_LIMIT_BYTES = 2_000
"""Maximum size in bytes of an outside tool's description, and of all texts of its parameters, about 500 tokens each."""

_WORD_LIMIT = 200
"""Maximum length in characters of a pattern, an allowed value or another word of a schema for models."""

_FENCE = re.compile(r"`{2,}|~{3,}|\"{3,}|'{3,}")
_TAG = re.compile(r"<(?=[A-Za-z/!|?])")
_SECTION = re.compile(r"\[(?=/?(?:tool|inst|sys|/))|(?<=\]\])>", re.IGNORECASE)
_OPENING = re.compile(r"^(?:[\s#>*+=|`~\[\]{}\-]+|[0-9]{1,3}[.)]\s)+")
_LABEL = re.compile(r"^([^\s:=()]+(?: [^\s:=()]+){0,3})\s?[:=\uff1a](?!//)\s*")


def clean_text(text: str, limit_bytes: int = OUTSIDE_TEXT_LIMIT_BYTES) -> str:
    """Returns the text as one paragraph that opens no heading, list, fence, tag or section. A note marks a cut text."""
    plain = _safe_line(text)
    plain = _LABEL.sub(r"\1 - ", _OPENING.sub("", plain), count=1)
    kept = fit_text(plain, limit_bytes)
    return (
        plain
        if kept is plain
        else f"{kept.rstrip()} [cut: {count_of(len(plain) - len(kept), 'more character')}]".lstrip()
    )


def clean_schema(schema: Mapping[str, Any], label: str) -> dict[str, Any]:
    """Returns the schema with its texts cleaned by `clean_text`, and without words that are unsafe to show.

    Raises:
        DefinitionError: The name of an argument is unsafe to show.
    """
    for name in cast("Mapping[str, Any]", schema.get("properties") or {}):
        if not _is_plain(name):
            raise DefinitionError(
                f"{label}: the argument {name!r:.200} of an outside tool holds characters that could be taken for a "
                "part of the prompt: rename it"
            )
    return _SchemaCleaner().node(schema)


@dataclass(frozen=True, slots=True, kw_only=True)
class Original:
    """A definition as its outside author wrote it, without invisible characters.

    It is for a client with a prompt of its own. toolwire's own prompts have the texts of `clean_text`.
    """

    title: str | None
    description: str
    input_schema: Mapping[str, Any]
    output_schema: Mapping[str, Any] | None

    def input_without(self, names: Collection[str]) -> dict[str, Any]:
        """Returns the input schema without these parameters, which the host fills in."""
        schema = dict(self.input_schema)
        if names:
            properties: Mapping[str, Any] = schema.get("properties") or {}
            schema["properties"] = {name: value for name, value in properties.items() if name not in names}
            schema["required"] = [name for name in schema.get("required") or () if name not in names]
        return schema


def original_of(
    label: str,
    title: Any,
    description: Any,
    input_schema: Mapping[str, Any],
    output_schema: Mapping[str, Any] | None,
) -> Original:
    """Returns a definition without its invisible characters. A warning in the log says so if it had any."""
    written = [title if isinstance(title, str) else None, description if isinstance(description, str) else ""]
    given: list[Any] = [*written, input_schema, output_schema]
    seen = visible_value(given)
    if given != seen:
        _LOG.warning("%s: invisible characters were removed from its texts", label)
    return Original(title=seen[0], description=seen[1], input_schema=seen[2], output_schema=seen[3])


def visible_value(value: Any) -> Any:
    """Returns a value of JSON whose texts have no invisible characters."""
    if isinstance(value, str):
        return visible_text(value)
    if isinstance(value, Mapping):
        fields = cast("Mapping[Any, Any]", value)
        return {visible_value(key): visible_value(item) for key, item in fields.items()}
    return [visible_value(item) for item in cast("list[Any]", value)] if isinstance(value, list) else value


class _SchemaCleaner:
    """The conversion of one schema. All of its texts share one budget."""

    def __init__(self) -> None:
        self._left = OUTSIDE_TEXT_LIMIT_BYTES

    def node(self, node: Mapping[str, Any]) -> dict[str, Any]:
        told: dict[str, Any] = {}
        for key, value in node.items():
            if not _is_plain(key) or key == "$comment":
                continue
            if key in ("description", "title") and isinstance(value, str):
                told[key] = self._text(value)
            elif key in _NAMED and isinstance(value, Mapping):
                named = cast("Mapping[str, Any]", value)
                told[key] = {name: self._inner(inner) for name, inner in named.items() if _is_plain(name)}
            elif key in ("enum", "examples") and isinstance(value, list):
                kept = [item for item in cast("list[Any]", value) if _is_plain_value(item)]
                told |= {key: kept} if kept else {}
            elif key in ("default", "const", "example"):
                told |= {key: value} if _is_plain_value(value) else {}
            elif not isinstance(value, str) or key in _REFERENCES or _is_plain(value):
                told[key] = self._inner(value)
        return told

    def _inner(self, value: Any) -> Any:
        if isinstance(value, Mapping):
            return self.node(cast("Mapping[str, Any]", value))
        if isinstance(value, list):
            items = cast("list[Any]", value)
            return [self._inner(item) for item in items if not isinstance(item, str) or _is_plain(item)]
        return value

    def _text(self, text: str) -> str:
        told = clean_text(text, max(self._left, 0))
        self._left -= len(told.encode("utf-8", "replace"))
        return told


_NAMED = frozenset({"properties", "patternProperties", "$defs", "definitions", "dependentSchemas", "dependentRequired"})
_REFERENCES = frozenset({"$ref", "$id", "$anchor", "$schema", "$dynamicRef", "$dynamicAnchor", "$recursiveRef"})


def _safe_line(text: str) -> str:
    """Returns one line without invisible characters, fences, or brackets that open a tag or a section."""
    line = " ".join(visible_text(" ".join(text.split())).split())
    return _SECTION.sub("(", _TAG.sub("\u2039", _FENCE.sub("'", line)))


def _is_plain(word: str) -> bool:
    return len(word) <= _WORD_LIMIT and _safe_line(word) == word


def _is_plain_value(value: Any) -> bool:
    if isinstance(value, str):
        return not value or _is_plain(value)
    if isinstance(value, Mapping):
        return all(_is_plain(key) and _is_plain_value(item) for key, item in cast("Mapping[str, Any]", value).items())
    return not isinstance(value, list) or all(map(_is_plain_value, cast("list[Any]", value)))

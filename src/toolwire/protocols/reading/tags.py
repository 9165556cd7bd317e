"""Lists and objects that a model writes as tags: `<urls><item>a</item></urls>`, read by the schema of the parameter.

Children of one name are the items of a list, and children of distinct names are the fields of an object. Everything
else is refused: text between tags, attributes, and tags that are not closed.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, cast

from toolwire.definition.json_schema.accepted_types import CONTAINER_TYPES, branch_of, types_accepted_by
from toolwire.definition.words import describe_one_value, limit_references
from toolwire.protocols.base import DEPTH_LIMIT, Refusal
from toolwire.protocols.reading.markup import CDATA, CDATA_END, CLOSING, MARK, OPENING, expand_references, is_empty
from toolwire.protocols.reading.strict_json import KEY_LIMIT

Leaf = Callable[[str, Any], Any]
"""Converts the text of a tag without tags inside by its schema."""


@dataclass(slots=True, kw_only=True)
class Element:
    """A tag with its content."""

    name: str
    pieces: list[tuple[str, bool]] = field(default_factory=list[tuple[str, bool]])
    """The decoded text outside of the tags inside, in pieces. True for CDATA."""
    children: list[Element] = field(default_factory=list["Element"])

    @property
    def text(self) -> str:
        """The value of a tag without tags inside. Blanks around CDATA are no part of it."""
        pieces = self.pieces
        sections = [at for at, (_, is_section) in enumerate(pieces) if is_section]
        first, last = (sections[0], sections[-1]) if sections else (0, len(pieces))
        outer = [text if first <= at <= last or text.strip() else "" for at, (text, _) in enumerate(pieces)]
        return "".join(outer)


@limit_references
def read_tags(text: str, schema: Any, root: Mapping[str, Any], leaf: Leaf) -> Any:
    """Returns the list or the object that a text of tags is by the schema.

    Raises:
        Refusal: The text has no such reading.
    """
    return _Tags(root=root, leaf=leaf).value(parse_tags(text), schema)


def parse_tags(text: str) -> Element:
    """Returns the tags of a text below one element without a name.

    Raises:
        Refusal: They are not well-formed, have attributes or are nested too deep.
    """
    top = Element(name="")
    is_open, position = [top], 0
    while position < len(text):
        here = is_open[-1]
        found = MARK.search(text, position)
        end = len(text) if found is None else found.start()
        here.pieces.append((_without_markup(text[position:end], here), False))
        position = end
        if found is None:
            break
        if found[0] in (CDATA, "<!--"):
            position = _section_end(text, found, here)
        elif closed := CLOSING.match(text, position):
            if len(is_open) == 1 or closed[1] != here.name:
                raise _unclear(here)
            is_open.pop()
            position = closed.end()
        else:
            position = _open(text, position, is_open)
    if len(is_open) > 1:
        raise _unclear(is_open[-1])
    return top


def _open(text: str, position: int, is_open: list[Element]) -> int:
    opened = OPENING.match(text, position)
    if opened is None:
        raise _unclear(is_open[-1])
    name = opened["name"]
    if (opened["attributes"] or "").strip(" \t\r\n/"):
        raise Refusal(f"<{name[:40]}> in a value has attributes. Write only text or tags in it, or the value as JSON.")
    if len(name) > KEY_LIMIT or len(is_open) > DEPTH_LIMIT:
        raise Refusal(f"The tags in a value are nested deeper than {DEPTH_LIMIT} levels, or a name is too long.")
    child = Element(name=name)
    is_open[-1].children.append(child)
    if not is_empty(opened):
        is_open.append(child)
    return opened.end()


def _section_end(text: str, found: re.Match[str], here: Element) -> int:
    """Adds a CDATA section to the text, or skips a comment, and returns the position after it."""
    closing = CDATA_END if found[0] == CDATA else "-->"
    end = text.find(closing, found.end())
    if end < 0:
        raise _unclear(here)
    if found[0] == CDATA:
        here.pieces.append((text[found.end() : end], True))
    return end + len(closing)


def _without_markup(text: str, here: Element) -> str:
    """Returns a text without markup: decoded if it is well-formed XML, else unchanged."""
    if CDATA_END in text:
        raise _unclear(here)
    value = expand_references(text)
    return text if value is None else value


def _unclear(element: Element) -> Refusal:
    place = f" of <{element.name[:40]}>" if element.name else ""
    return Refusal(f"The tags in the value{place} are not well-formed. Write the value as JSON, in CDATA.")


@dataclass(slots=True, kw_only=True)
class _Tags:
    """Makes values of elements by the schema."""

    root: Mapping[str, Any]
    leaf: Leaf
    types: dict[int, frozenset[str]] = field(default_factory=dict[int, frozenset[str]])
    branches: dict[tuple[int, str], dict[str, Any]] = field(default_factory=dict[tuple[int, str], dict[str, Any]])

    def value(self, element: Element, schema: Any) -> Any:
        if not element.children:
            return self.leaf(element.text, schema)
        if element.text.strip():
            raise Refusal(f"Text stands between the tags in {_element_label(element)}. Write only tags in it, or JSON.")
        names = [child.name for child in element.children]
        if self._is_list(element, names, schema):
            return self._list(element, schema)
        seen = set[str]()
        twice = next((name for name in names if name in seen or seen.add(name)), None)
        if twice is not None:
            raise Refusal(
                f"<{twice[:40]}> is given twice in {_element_label(element)}, which is an object. Write it once."
            )
        return self._object(element, schema)

    def _is_list(self, element: Element, names: list[str], schema: Any) -> bool:
        """True for a list, and False for an object.

        Raises:
            Refusal: The schema accepts neither, or it is not clear which of both is meant.
        """
        wanted = self._types_of(schema)
        if "string" in wanted or not wanted & CONTAINER_TYPES:
            kind = describe_one_value(schema, self.root)
            raise Refusal(
                f"Tags stand in {_element_label(element)}, and it must be {kind}. Put the whole value into CDATA."
            )
        is_one_name = len(set(names)) == 1
        if wanted >= CONTAINER_TYPES and len(names) == 1:
            raise Refusal(f"The tag in {_element_label(element)} may be an item or a field. Write JSON, in CDATA.")
        if "array" in wanted and (is_one_name or "object" not in wanted):
            if not is_one_name:
                raise Refusal(
                    f"The tags in {_element_label(element)} differ, and it is a list. Write one <item> for each item."
                )
            return True
        return False

    def _list(self, element: Element, schema: Any) -> list[Any]:
        node = self._branch(schema, "array")
        places = cast("list[Any]", node.get("prefixItems") or [])
        return [
            self.value(child, places[at] if at < len(places) else node.get("items"))
            for at, child in enumerate(element.children)
        ]

    def _object(self, element: Element, schema: Any) -> dict[str, Any]:
        node = self._branch(schema, "object")
        fields = cast("Mapping[str, Any]", node.get("properties") or {})
        other = node.get("additionalProperties")
        return {child.name: self.value(child, fields.get(child.name, other)) for child in element.children}

    def _types_of(self, schema: Any) -> frozenset[str]:
        known = self.types.get(id(schema))
        if known is None:
            known = self.types[id(schema)] = types_accepted_by(schema, self.root)
        return known

    def _branch(self, schema: Any, kind: str) -> dict[str, Any]:
        known = self.branches.get((id(schema), kind))
        if known is None:
            known = self.branches[id(schema), kind] = branch_of(schema, kind, self.root)
        return known


def _element_label(element: Element) -> str:
    return f"<{element.name[:40]}>" if element.name else "the value"

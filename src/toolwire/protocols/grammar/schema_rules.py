"""Conversion of a JSON schema to rules for its values, in one notation.

Supported: types, enum, const, anyOf, oneOf (as anyOf), allOf, references (recursive ones to a depth of four), bounds,
lengths, and patterns without look-around. Not supported: `not`, `if`, `contains`, `dependentRequired`, distinct items
other than enum values, distinct keys that the model invents, and formats other than date, time, duration and UUID.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, cast

from toolwire.definition.words import resolve
from toolwire.protocols.grammar.notation import Notation
from toolwire.protocols.grammar.numbers import integer, number
from toolwire.protocols.grammar.pattern import BASE64, FORMATS, Untranslatable, read_pattern
from toolwire.protocols.grammar.rules import Grammar, choice, literal

RECURSION = 4
"""Maximum depth of a schema inside itself."""

ITEMS_LIMIT = 64
"""Maximum number of items of an array whose schema sets no limit."""

_ANY_DEPTH = 2
_PAIRS_LIMIT = 32


class Values:
    """The rules for one tool's values."""

    def __init__(
        self, grammar: Grammar, notation: Notation, root: Mapping[str, Any], nested: Values | None = None
    ) -> None:
        self._grammar = grammar
        self._notation = notation
        self._root = root
        self._nested = nested
        self._known: dict[tuple[str, int], str | None] = {}
        self._recursive = recursive_references(root)
        self._space = space(grammar)
        self._comma = f'"," {self._space}'

    def value(self, schema: Any, depth: int = RECURSION) -> str | None:
        """Returns the name of the rule for the schema's values. None if no value can be written."""
        key = (json.dumps(schema, sort_keys=True, default=str), depth)
        if key not in self._known:
            body = self._body(schema, depth)
            self._known[key] = None if body is None else self._grammar.rule(_hint(schema), body)
        return self._known[key]

    def _body(self, schema: Any, depth: int) -> str | None:
        if schema is False or depth < 0:
            return None
        node = cast("dict[str, Any]", schema) if isinstance(schema, dict) else {}
        if "$ref" in node:
            return self._reference_target(node, depth)
        if "const" in node or "enum" in node:
            return self._one_of([node["const"]] if "const" in node else node["enum"])
        for key in ("allOf", "anyOf", "oneOf"):
            if node.get(key):
                return self._combination(key, node, depth)
        kind = node.get("type")
        if isinstance(kind, list):
            return self._alternatives([{**node, "type": one} for one in cast("list[str]", kind)], depth)
        return self._value_of_type(kind or _implicit_type(node), node, depth)

    def _reference_target(self, node: Mapping[str, Any], depth: int) -> str | None:
        reference = str(node["$ref"])
        beside = {key: value for key, value in node.items() if key != "$ref"}
        target = resolve({"$ref": reference}, self._root)
        return self._body(merge_schemas(target, beside), depth - (reference in self._recursive))

    def _combination(self, key: str, node: Mapping[str, Any], depth: int) -> str | None:
        beside = {name: value for name, value in node.items() if name != key}
        if key == "allOf":
            for part in node[key]:
                beside = merge_schemas(beside, resolve(part, self._root))
            return self._body(beside, depth)
        constraints = {name: value for name, value in beside.items() if name not in _ANNOTATIONS}
        options = [merge_schemas(constraints, option) if constraints else option for option in node[key]]
        held = [option for option in options if not self._is_beyond(option)]
        return self._alternatives(held or options, depth)

    def _alternatives(self, options: Sequence[Any], depth: int) -> str | None:
        found = [rule for option in options if (rule := self.value(option, depth)) is not None]
        return " | ".join(dict.fromkeys(found)) if found else None

    def _one_of(self, values: Sequence[Any]) -> str | None:
        found = [text for value in values if (text := self._constant(value)) is not None]
        return choice(found) if found else None

    def _constant(self, value: Any) -> str | None:
        if isinstance(value, str):
            return self._notation.exact(value)
        if value is None:
            return literal(self._notation.null)
        if isinstance(value, bool):
            return literal(self._notation.true if value else self._notation.false)
        return self._notation.constant(value)

    def _value_of_type(self, kind: str, node: Mapping[str, Any], depth: int) -> str | None:
        match kind:
            case "string":
                return self._text(node)
            case "integer":
                return integer(node)
            case "number":
                return number(node)
            case "boolean":
                return f"{literal(self._notation.true)} | {literal(self._notation.false)}"
            case "null":
                return literal(self._notation.null)
            case "array" | "object" if self._nested is not None:
                return self._nested.value(node, depth)
            case "array":
                return self._array(node, depth)
            case "object":
                return self._object(node, depth)
            case _:
                return self._anything(_ANY_DEPTH)

    def _text(self, node: Mapping[str, Any]) -> str | None:
        least, most = node.get("minLength", 0), node.get("maxLength")
        if most is not None and least > most:
            return None
        pattern = _pattern(node)
        if pattern is not None:
            try:
                return self._notation.pattern(self._grammar, read_pattern(pattern, least, most))
            except Untranslatable:
                pass
        return self._notation.text(self._grammar, least, most)

    def _is_beyond(self, option: Any) -> bool:
        """True if the option is a text with a pattern that a grammar cannot express, such as that of a Decimal."""
        node = resolve(option, self._root)
        pattern = _pattern(node)
        if pattern is None:
            return False
        try:
            read_pattern(pattern, node.get("minLength", 0), node.get("maxLength"))
        except Untranslatable:
            return True
        return False

    def _array(self, node: Mapping[str, Any], depth: int) -> str | None:
        places = cast("list[Any]", node.get("prefixItems") or [])
        least, most = node.get("minItems", 0), node.get("maxItems", ITEMS_LIMIT)
        if places:
            rules = [self.value(place, depth) for place in places]
            kept = [rule for rule in rules if rule is not None]
            return self._between("[", f" {self._comma} ".join(kept), "]") if len(kept) == len(rules) else None
        items = node.get("items", {})
        if node.get("uniqueItems") and isinstance(items, dict) and "enum" in items and not least:
            members = [
                rule
                for value in cast("list[Any]", items["enum"])
                if (rule := self.value({"const": value}, depth)) is not None
            ]
            return self._between("[", sequence(self._grammar, [], members, self._comma), "]")
        rule = self.value(items, depth)
        if rule is None or most == 0:
            return '"[]"' if least == 0 else None
        most = max(least, min(most, max(least, 4 * ITEMS_LIMIT)))
        more = self._grammar.rule("item", f"{self._comma} {rule}")
        filled = f"{rule} {self._grammar.repeat(more, max(0, least - 1), most - 1)}"
        return self._between("[", filled if least else f"({filled})?", "]")

    def _object(self, node: Mapping[str, Any], depth: int) -> str | None:
        properties = cast("dict[str, Any]", node.get("properties") or {})
        required = cast("list[str]", node.get("required") or [])
        if not properties and not required:
            return self._free_object(node, depth)
        needed: list[str] = []
        extra: list[str] = []
        for name in (*properties, *(name for name in required if name not in properties)):
            rule, key = self.value(properties.get(name, {}), depth), self._constant(name)
            if rule is not None and key is not None:
                (needed if name in required else extra).append(f'{key} ":" {self._space} {rule}')
            elif name in required:
                return None
        inner = sequence(self._grammar, needed, extra, self._comma)
        return self._between("{", inner, "}") if inner else '"{}"'

    def _free_object(self, node: Mapping[str, Any], depth: int) -> str | None:
        patterns = cast("dict[str, Any]", node.get("patternProperties") or {})
        key, value = next(iter(patterns.items()), (None, node.get("additionalProperties", {})))
        names = node.get("propertyNames", {"pattern": key} if key else {})
        rule = self._anything(0) if value in (True, {}) else self.value(value, depth)
        least, most = node.get("minProperties", 0), min(node.get("maxProperties", _PAIRS_LIMIT), _PAIRS_LIMIT)
        if rule is None or most == 0:
            return '"{}"' if least == 0 else None
        name = self.value({"type": "string", **names}) if names else None
        pair = f'{name or self._notation.key(self._grammar)} ":" {self._space} {rule}'
        one = self._grammar.rule("pair", pair)
        more = self._grammar.repeat(self._grammar.rule("pairs", f"{self._comma} {one}"), max(0, least - 1), most - 1)
        return self._between("{", f"{one} {more}" if least else f"({one} {more})?", "}")

    def _anything(self, depth: int) -> str:
        """Returns a rule for any value with up to `depth` levels of arrays and objects."""
        if self._nested is not None:
            return self._notation.text(self._grammar, 0, None)
        scalars = [self.value({"type": kind}, 0) for kind in ("string", "number", "boolean", "null")]
        found = [rule for rule in scalars if rule is not None]
        if depth:
            inner = self._grammar.rule("any-value", self._anything(depth - 1))
            more = self._grammar.rule("any-item", f"{self._comma} {inner}")
            pair = self._grammar.rule("any-pair", f'{self._notation.key(self._grammar)} ":" {self._space} {inner}')
            pairs = self._grammar.rule("any-pairs", f"{self._comma} {pair}")
            found.append(self._between("[", f"({inner} {more}{{0,15}})?", "]"))
            found.append(self._between("{", f"({pair} {pairs}{{0,15}})?", "}"))
        return self._grammar.rule("any-value", " | ".join(found))

    def _between(self, opening: str, inner: str, closing: str) -> str:
        return f"{literal(opening)} {self._space} {inner} {self._space} {literal(closing)}"


def space(grammar: Grammar) -> str:
    """Returns the name of the rule for optional space between two parts: a blank, or a newline with indentation."""
    return grammar.rule("space", '(" " | "\\n" [ \\t]{0,32})?')


def sequence(grammar: Grammar, needed: Sequence[str], extra: Sequence[str], comma: str) -> str:
    """Returns an expression for the required parts, then any optional parts in order, separated by commas.

    Returns an empty text without parts.
    """
    if needed:
        return " ".join([f" {comma} ".join(needed), *(f"({comma} {part})?" for part in extra)])
    if not extra:
        return ""
    options: list[str] = []
    rest = ""
    for part in reversed(extra):
        options.append(f"{part} {rest}".rstrip())
        rest = grammar.rule("rest", f"({comma} {part})? {rest}".rstrip())
    return f"({' | '.join(reversed(options))})?"


_ANNOTATIONS = frozenset({"title", "description", "default", "examples", "deprecated", "discriminator", "$schema"})
_OF_TYPES = (
    ("object", ("properties", "additionalProperties", "required", "patternProperties")),
    ("array", ("items", "prefixItems", "minItems")),
    ("string", ("pattern", "minLength", "maxLength", "format", "contentEncoding")),
    ("number", ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf")),
)


def _implicit_type(node: Mapping[str, Any]) -> str:
    return next((kind for kind, keys in _OF_TYPES if any(key in node for key in keys)), "any")


def _pattern(node: Mapping[str, Any]) -> str | None:
    if "pattern" in node:
        return str(node["pattern"])
    return BASE64 if node.get("contentEncoding") == "base64" else FORMATS.get(str(node.get("format")))


def _hint(schema: Any) -> str:
    if not isinstance(schema, dict):
        return "value"
    node = cast("dict[str, Any]", schema)
    kind = node.get("type")
    title = node.get("title") or (kind if isinstance(kind, str) else "") or "value"
    return str(title).lower()[:40]


def recursive_references(root: Mapping[str, Any]) -> frozenset[str]:
    """Returns the references to schemas that contain themselves, directly or through other references."""
    reached: dict[str, set[str]] = {}
    waiting = set(_references(root))
    while waiting:
        reference = waiting.pop()
        reached[reference] = set(_references(resolve({"$ref": reference}, root)))
        waiting |= reached[reference] - reached.keys()
    return frozenset(reference for reference in reached if _is_reached(reference, reached))


def merge_schemas(first: Mapping[str, Any], second: Mapping[str, Any]) -> dict[str, Any]:
    """Returns a schema for the values that both schemas accept.

    The merge is exact for keywords that a grammar supports. For all others, the second schema wins.
    """
    found = {**first, **second}
    for key in first.keys() & second.keys():
        one, other = first[key], second[key]
        if key == "properties":
            shared = {name: merge_schemas(one[name], other[name]) for name in one if name in other}
            found[key] = {**one, **other, **shared}
        elif key == "required":
            found[key] = [*one, *(name for name in other if name not in one)]
        elif key == "enum":
            found[key] = [value for value in one if value in other]
        elif key in _LARGER:
            found[key] = max(one, other)
        elif key in _SMALLER:
            found[key] = min(one, other)
        elif key == "type":
            found[key] = _common_type(one, other)
    return found


_LARGER = frozenset({"minimum", "exclusiveMinimum", "minLength", "minItems", "minProperties"})
_SMALLER = frozenset({"maximum", "exclusiveMaximum", "maxLength", "maxItems", "maxProperties"})


def _common_type(one: Any, other: Any) -> Any:
    second = cast("list[Any]", other) if isinstance(other, list) else [other]
    common = [kind for kind in (cast("list[Any]", one) if isinstance(one, list) else [one]) if kind in second]
    if not common:
        return cast("Any", other)
    return common[0] if len(common) == 1 else common


def _is_reached(reference: str, reached: Mapping[str, set[str]]) -> bool:
    seen: set[str] = set()
    waiting = set(reached[reference])
    while waiting:
        found = waiting.pop()
        if found == reference:
            return True
        seen.add(found)
        waiting |= reached[found] - seen
    return False


def _references(schema: Any) -> Iterator[str]:
    if isinstance(schema, list):
        for item in cast("list[Any]", schema):
            yield from _references(item)
    if not isinstance(schema, dict):
        return
    for key, value in cast("dict[str, Any]", schema).items():
        if key == "$ref" and isinstance(value, str):
            yield value
        else:
            yield from _references(value)

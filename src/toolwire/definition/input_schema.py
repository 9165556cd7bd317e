"""JSON schemas as a model should read them: no titles but the author's, nothing else allowed, every word in place."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

from pydantic.json_schema import GenerateJsonSchema, JsonSchemaMode, JsonSchemaValue

_MADE_UP = "\0"
"""Stands for a title that pydantic would make up for a parameter; no author's title is this."""


class ToolJsonSchema(GenerateJsonSchema):
    """pydantic's generator, without the titles it makes up and with bytes as base64."""

    ignored_warning_kinds = {"skipped-choice", "non-serializable-default"}  # noqa: RUF012  # pydantic's own attribute

    def field_title_should_be_set(self, schema: Any) -> bool:  # noqa: ARG002
        """Never: a field's title is the author's or there is none."""
        return False

    def get_title_from_name(self, name: str) -> str:  # noqa: ARG002
        """What marks a parameter's title as made up: pydantic asks for one whatever the method above says."""
        return _MADE_UP

    def bytes_schema(self, schema: Any) -> JsonSchemaValue:
        """Base64 text; limits of length are those of the text."""
        found: JsonSchemaValue = {"type": "string", "contentEncoding": "base64"}
        for ours, theirs in (("minLength", "min_length"), ("maxLength", "max_length")):
            if theirs in schema:
                found[ours] = -(-schema[theirs] // 3) * 4
        return found

    def model_schema(self, schema: Any) -> JsonSchemaValue:
        """A model's, without its class's name for a title."""
        return _untitled(super().model_schema(schema), schema["cls"])

    def dataclass_schema(self, schema: Any) -> JsonSchemaValue:
        """A dataclass's, without its class's name for a title."""
        return _untitled(super().dataclass_schema(schema), schema["cls"])

    def typed_dict_schema(self, schema: Any) -> JsonSchemaValue:
        """A TypedDict's, without its class's name for a title."""
        return _untitled(super().typed_dict_schema(schema), schema.get("cls"))

    def generate(self, schema: Any, mode: JsonSchemaMode = "validation") -> JsonSchemaValue:
        """The whole schema. Enumerations get their titles late, so here they lose them."""
        whole = super().generate(schema, mode)
        root = schema["schema"] if schema["type"] == "definitions" else schema
        defs = cast("dict[str, JsonSchemaValue]", whole.get("$defs", {}))
        for key, node in defs.items():
            defs[key] = _unnamed(node, key)
        return _untitled(whole, root.get("cls"))


def finished(schema: Mapping[str, Any], authored: Mapping[str, str], documented: Mapping[str, str]) -> dict[str, Any]:
    """The schema of a whole call. A description in the schema itself wins over `authored`, that over `documented`."""
    properties = {
        name: _described(node, authored.get(name) or documented.get(name, ""))
        for name, node in cast("dict[str, dict[str, Any]]", schema.get("properties", {})).items()
    }
    whole: dict[str, Any] = {"type": "object", "properties": properties}
    if schema.get("required"):
        whole["required"] = schema["required"]
    whole["additionalProperties"] = False
    if schema.get("$defs"):
        whole["$defs"] = schema["$defs"]
    return whole


def _described(node: dict[str, Any], text: str) -> dict[str, Any]:
    if node.get("title") == _MADE_UP:
        node = _without_title(node)
    return {**node, "description": text} if text and "description" not in node else node


def _untitled(schema: JsonSchemaValue, kind: type | None) -> JsonSchemaValue:
    if kind is not None and schema.get("title") == kind.__name__:
        return _without_title(schema)
    return schema


def _unnamed(node: JsonSchemaValue, key: str) -> JsonSchemaValue:
    title = node.get("title")
    named = "enum" in node and (key == title or key.endswith(f"__{title}"))
    return _without_title(node) if named else node


def _without_title(schema: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in schema.items() if key != "title"}

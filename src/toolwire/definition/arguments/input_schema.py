"""JSON schemas for models: only the author's titles, no additional properties, and a description for each parameter."""

from __future__ import annotations

import json
from collections.abc import Mapping
from enum import Enum
from types import SimpleNamespace
from typing import Any, cast

from pydantic.json_schema import GenerateJsonSchema, JsonSchemaMode, JsonSchemaValue

from toolwire.definition.arguments.json_values import json_form
from toolwire.definition.texts.parameter_text import both

_MADE_UP = "\0"
"""Marks a title that pydantic invents for a parameter. No author's title is this text."""


class ToolJsonSchema(GenerateJsonSchema):
    """pydantic's generator without invented titles, and with bytes as base64."""

    ignored_warning_kinds = {"skipped-choice", "non-serializable-default"}  # noqa: RUF012  # pydantic's own attribute

    def field_title_should_be_set(self, schema: Any) -> bool:  # noqa: ARG002
        """Always False: a field has a title only if its author gave one."""
        return False

    def get_title_from_name(self, name: str) -> str:  # noqa: ARG002
        """Returns the mark of an invented title. pydantic asks for a title in spite of the method above."""
        return _MADE_UP

    def default_schema(self, schema: Any) -> JsonSchemaValue:
        """Keeps a default that pydantic cannot write, such as a number of numpy. The tool tells it as text."""
        found = super().default_schema(schema)
        if hasattr(cast("type[Any]", type(schema.get("default"))), "get_secret_value"):
            # pydantic writes asterisks, and a model would give them as the secret.
            return {key: value for key, value in found.items() if key != "default"}
        if "default" in schema and ("default" not in found or _holds_no_number(schema["default"])):
            found = {**found, "default": schema["default"]}
        return found

    def bytes_schema(self, schema: Any) -> JsonSchemaValue:
        """Describes bytes as base64 text. Length limits are converted to those of the text."""
        found: JsonSchemaValue = {"type": "string", "contentEncoding": "base64"}
        for ours, theirs in (("minLength", "min_length"), ("maxLength", "max_length")):
            if theirs in schema:
                found[ours] = -(-schema[theirs] // 3) * 4
        return found

    def enum_schema(self, schema: Any) -> JsonSchemaValue:
        """Describes the members by the texts from which they are read."""
        members = [SimpleNamespace(value=json_form(member.value)) for member in schema["members"]]
        return super().enum_schema(cast("Any", {**schema, "members": members}))

    def literal_schema(self, schema: Any) -> JsonSchemaValue:
        """Describes the members as `enum_schema` does."""
        values = [member.value if isinstance(member, Enum) else member for member in schema["expected"]]
        return super().literal_schema(cast("Any", {**schema, "expected": [json_form(value) for value in values]}))

    def model_schema(self, schema: Any) -> JsonSchemaValue:
        """Describes a model without its class name as the title."""
        return _without_class_title(super().model_schema(schema), schema["cls"])

    def dataclass_schema(self, schema: Any) -> JsonSchemaValue:
        """Describes a dataclass without its class name as the title."""
        return _without_class_title(super().dataclass_schema(schema), schema["cls"])

    def typed_dict_schema(self, schema: Any) -> JsonSchemaValue:
        """Describes a TypedDict without its class name as the title."""
        return _without_class_title(super().typed_dict_schema(schema), schema.get("cls"))

    def generate(self, schema: Any, mode: JsonSchemaMode = "validation") -> JsonSchemaValue:
        """Generates the whole schema. Enumerations get their titles late, so they are removed here."""
        whole = super().generate(schema, mode)
        root = schema["schema"] if schema["type"] == "definitions" else schema
        defs = cast("dict[str, JsonSchemaValue]", whole.get("$defs", {}))
        for key, node in defs.items():
            defs[key] = _without_enum_title(node, key)
        return _without_class_title(whole, root.get("cls"))


def _holds_no_number(default: Any) -> bool:
    """True for a list, dict or member of an enumeration with infinity or NaN inside, which pydantic writes as null."""
    if not isinstance(default, list | dict | Enum):
        return False
    try:
        json.dumps(default, allow_nan=False, default=_value_of_member)
    except ValueError:
        return True
    except (TypeError, RecursionError):
        return False
    return False


def _value_of_member(member: Any) -> Any:
    if isinstance(member, Enum):
        return member.value
    raise TypeError


def finish_schema(
    schema: Mapping[str, Any], authored: Mapping[str, str], documented: Mapping[str, str]
) -> dict[str, Any]:
    """Returns the schema of a whole call.

    A description in the schema itself is preferred to one in `authored`. That in `documented` follows it.
    """
    properties = {
        name: _with_description(node, authored.get(name, ""), documented.get(name, ""))
        for name, node in cast("dict[str, dict[str, Any]]", schema.get("properties", {})).items()
    }
    whole: dict[str, Any] = {"type": "object", "properties": properties}
    if schema.get("required"):
        whole["required"] = schema["required"]
    whole["additionalProperties"] = False
    if schema.get("$defs"):
        whole["$defs"] = schema["$defs"]
    return whole


def _with_description(node: dict[str, Any], authored: str, documented: str) -> dict[str, Any]:
    if node.get("title") == _MADE_UP:
        node = _without_title(node)
    text = both(node.get("description", authored), documented)
    return {**node, "description": text} if text else node


def _without_class_title(schema: JsonSchemaValue, kind: type | None) -> JsonSchemaValue:
    if kind is not None and schema.get("title") == kind.__name__:
        return _without_title(schema)
    return schema


def _without_enum_title(node: JsonSchemaValue, key: str) -> JsonSchemaValue:
    title = node.get("title")
    named = "enum" in node and (key == title or key.endswith(f"__{title}"))
    return _without_title(node) if named else node


def _without_title(schema: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in schema.items() if key != "title"}

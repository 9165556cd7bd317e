"""The options of everything that makes a tool, for type checkers."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from toolwire.definition.declared import PublishedOptions
from toolwire.definition.tool import Permission
from toolwire.vocabulary.effects import Effect, EffectsOf, Idempotency, Label, Reconcile


class McpOptions(PublishedOptions, total=False):
    """The options of `ToolSpec.from_mcp`."""

    permission: Permission
    effects: Iterable[Effect] | None
    labels: Iterable[Label] | None
    idempotent: Idempotency
    reconcile: Reconcile | None
    effects_of: EffectsOf | None
    tags: Iterable[str] | None


class SchemaOptions(McpOptions, total=False):
    """The options of `ToolSpec.from_jsonschema`."""

    title: str | None
    annotations: Mapping[str, Any] | None
    examples: Iterable[Any] | None


class FunctionOptions(SchemaOptions, total=False):
    """The options of `ToolSpec.from_function`, `from_code`, `@tool` and `@reg_toolspec`."""

    name: str | None
    description: str | None
    parse_docstring: bool
    output_schema: Mapping[str, Any] | None

"""Makes a call of a tool-use block, as chat models write them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

from toolwire.runtime.identity import new_id
from toolwire.vocabulary.calls import ToolCall
from toolwire.vocabulary.errors import DefinitionError


def call_of(block: object) -> ToolCall:
    """Returns the call that a block asks for, under the block's id if it has one.

    Raises:
        DefinitionError: it is not a mapping with a name and an input.
    """
    if isinstance(block, Mapping):
        fields = cast("Mapping[str, Any]", block)
        name, arguments, given_id = fields.get("name"), fields.get("input"), fields.get("id")
        if isinstance(name, str) and (arguments is None or isinstance(arguments, Mapping)):
            call_id = given_id if isinstance(given_id, str) and given_id else new_id("r")
            return ToolCall(name, cast("Mapping[str, Any] | None", arguments), id=call_id)
    raise DefinitionError(
        f"{block!r:.200} is not a tool use: give a mapping with a name (a str) and an input (a mapping)"
    )

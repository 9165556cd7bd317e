"""A default that JSON cannot hold is told in the description, and no schema has it."""

from __future__ import annotations

import json
import math
import threading
from enum import Enum
from typing import Annotated, Any

import numpy as np
import pytest
from pydantic import Field, SecretStr

from toolwire import Session, ToolRegistry, ToolSpec, protocols

THREE = np.int64(3)
UNSET = object()


def test_odd_defaults_are_in_the_description_alone() -> None:
    def find(
        high: float = float("inf"),
        low: Annotated[float, "the least"] = float("-inf"),
        step: Any = THREE,
        bounds: list[float] = [float("nan")],  # noqa: B006
        limit: int = 10,
        unset: Any = UNSET,
    ) -> str:
        """Finds.

        Args:
            high: the most
        """
        return ""

    assert ToolSpec.from_function(find).params == {
        "high": {"type": "number", "description": "the most\nDefault: inf."},
        "low": {"type": "number", "description": "the least\nDefault: -inf."},
        "step": {"description": "Default: 3."},
        "bounds": {"type": "array", "items": {"type": "number"}, "description": "Default: ['NaN']."},
        "limit": {"type": "integer", "default": 10},
        "unset": {},
    }


@pytest.mark.parametrize("name", ["openai", "openai-responses", "anthropic", "gemini"])
def test_what_goes_to_a_provider_is_json(name: str) -> None:
    def find(high: float = float("inf"), default: float = float("nan"), scale: Any = np.inf) -> str:
        """Finds."""
        return ""

    assert json.dumps(protocols.get(name).describe([ToolSpec.from_function(find)]), allow_nan=False)


class Bound(Enum):
    OPEN = math.inf
    ONE = 1.5


class Shared(Enum):
    LOCK = threading.Lock()


LOCK = threading.Lock()


def test_members_that_are_no_json_are_written_as_text() -> None:
    def find(bound: Bound, other: Bound = Bound.OPEN) -> str:
        """Finds."""
        return f"{bound.name} {other.name}"

    spec = ToolSpec.from_function(find)
    assert spec.to_mcp().input_schema["$defs"]["Bound"] == {"enum": ["Infinity", 1.5]}
    assert spec.params["other"] == {"$ref": "#/$defs/Bound", "description": 'Default: "Infinity".'}
    registry = ToolRegistry()
    registry.register(find)
    assert registry.invoke("find", {"bound": "Infinity"}).data == "OPEN OPEN"
    assert "bound: Literal['Infinity', 1.5]" in Session(registry).system_prompt


def test_examples_and_annotations_that_are_no_json_are_left_out() -> None:
    def find(
        a: Annotated[float, Field(examples=[math.nan, 1.0])],
        b: Annotated[float, Field(examples=[math.nan])],
        c: Annotated[float, Field(json_schema_extra={"x-step": math.inf})],
    ) -> str:
        """Finds."""
        return ""

    assert ToolSpec.from_function(find).params == {
        "a": {"type": "number", "examples": [1.0]},
        "b": {"type": "number"},
        "c": {"type": "number"},
    }


def test_a_default_that_cannot_be_copied_is_left_out() -> None:
    def find(lock: Any = LOCK) -> bool:
        """Finds."""
        return lock is LOCK

    registry = ToolRegistry()
    registry.register(find)
    assert ToolSpec.from_function(find).params == {"lock": {}}
    assert registry.invoke("find", {}).data is True


def test_no_text_for_a_model_has_the_address_of_an_object() -> None:
    def find() -> Shared:
        """Finds."""
        return Shared.LOCK

    assert "def find() -> lock:" in Session([find]).system_prompt


def test_the_asterisks_of_a_secret_are_no_default() -> None:
    def find(key: SecretStr = SecretStr("k")) -> str:  # noqa: B008
        """Finds."""
        return key.get_secret_value()

    assert "default" not in ToolSpec.from_function(find).params["key"]
    assert "*" not in Session([find]).system_prompt.partition("def find(")[2].partition(")")[0]

"""A default that JSON cannot hold is told in the description, and no schema has it."""

from __future__ import annotations

import json
from typing import Annotated, Any

import numpy as np
import pytest

from toolwire import ToolSpec, protocols

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

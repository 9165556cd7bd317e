"""Large values are on record once in a run: a later record refers to the step that has them.

The answer of a tool can be the answer of the program that called it, and is in the turn's outcome as well.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from hashlib import sha256
from typing import Any, cast

from toolwire.vocabulary.values import TAG

LARGE_BYTES = 16_384
"""Bytes from which a record is large: looking for values that are on record costs less than writing them again."""

_STEP = "step"
"""The tag of a reference. No value has this tag: `values.tag` writes a mapping with such a key in another form."""
_CONTAINERS = (str, list, dict)


class Shared:
    """The large results on record of one run. Its ledger guards it with a lock."""

    def __init__(self) -> None:
        self._keys: dict[tuple[type, int], dict[bytes, str]] = {}
        """Keys of steps, by the hash of their data, by type and length."""

    def add(self, key: str, data: Any) -> None:
        """Remembers the tagged data of a step that is on record."""
        if isinstance(data, _CONTAINERS):
            shape = _shape(cast("str", data))
            self._keys.setdefault(shape, {}).setdefault(_hash(data), key)

    def shortened(self, data: Any) -> Any:
        """The tagged data, with references in the place of values that are on record."""
        return self._referring(data) if self._keys else data

    def _referring(self, data: Any) -> Any:
        if not isinstance(data, _CONTAINERS):
            return data
        known = self._keys.get(_shape(cast("str", data)))
        key = None if known is None else known.get(_hash(data))
        if key is not None:
            return {TAG: _STEP, "v": key}
        if isinstance(data, dict):
            return {name: self._referring(item) for name, item in cast("dict[str, Any]", data).items()}
        return [self._referring(item) for item in cast("list[Any]", data)] if isinstance(data, list) else data


def whole(data: Any, results: Mapping[str, Any]) -> Any:
    """The tagged data with all references replaced. `results` are the tagged data of earlier steps, by their keys.

    Raises:
        LookupError: a step is missing that the data refer to.
    """
    if isinstance(data, dict):
        items = cast("dict[str, Any]", data)
        if items.get(TAG) == _STEP:
            return results[items["v"]]
        return {name: whole(item, results) for name, item in items.items()}
    return [whole(item, results) for item in cast("list[Any]", data)] if isinstance(data, list) else data


def _shape(data: str) -> tuple[type, int]:
    return type(data), len(data)


def _hash(data: Any) -> bytes:
    # Not as ASCII: there an emoji and its two surrogates have the same text.
    return sha256(json.dumps(data, ensure_ascii=False).encode("utf-8", "surrogatepass")).digest()

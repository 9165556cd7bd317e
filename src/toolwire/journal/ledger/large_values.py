"""Stores large values once per run: a later record refers to the step that holds the value.

A tool's result can be the result of the program that called it, and it is also part of the turn's outcome. Mixed
content is the data of its result, and its blocks as well.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from hashlib import sha256
from typing import Any, cast

from toolwire.vocabulary.texts.lone_surrogates import utf8_bytes
from toolwire.vocabulary.values import TAG

LARGE_BYTES = 16_384
"""Size in bytes above which a record is large. Above it, searching for recorded values costs less than writing them
again.
"""

_STEP = "step"
"""The tag of a reference. No value has this tag: `values.tag` writes a mapping with such a key in another form."""
IN_DATA = {TAG: "data"}
"""Stands in place of blocks that are the data of their result. No value has this tag."""
_CONTAINERS = (str, list, dict)


class LargeValues:
    """The large results on record for one run. Values are added under the ledger's lock; reading needs no lock."""

    def __init__(self) -> None:
        self._keys: dict[tuple[type, int], dict[bytes, str]] = {}
        """Maps type and length to a mapping from the hash of a step's data to the step's key."""

    def add(self, key: str, data: Any) -> None:
        """Remembers the tagged data of a step that is on record."""
        if isinstance(data, _CONTAINERS):
            shape = _shape(cast("str", data))
            self._keys.setdefault(shape, {}).setdefault(_hash(data), key)

    def shorten(self, data: Any) -> Any:
        """Returns the tagged data with recorded values replaced by references."""
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
    """Returns the tagged data with all references resolved.

    `results` maps the key of each earlier step to its tagged data.

    Raises:
        LookupError: The data refer to a step that is missing.
    """
    if isinstance(data, dict):
        items = cast("dict[str, Any]", data)
        if items.get(TAG) == _STEP:
            return results[items["v"]]
        return {name: whole(item, results) for name, item in items.items()}
    return [whole(item, results) for item in cast("list[Any]", data)] if isinstance(data, list) else data


def are_data(blocks: list[Any], data: Any) -> bool:
    """True if tagged blocks are the data of their result: the list of them, or the only one."""
    return bool(blocks) and data in (blocks, blocks[0])


def blocks_in(data: Any) -> list[Any]:
    """Returns the blocks in whose place `IN_DATA` stands."""
    return cast("list[Any]", data) if isinstance(data, list) else [data]


def _shape(data: str) -> tuple[type, int]:
    return type(data), len(data)


def _hash(data: Any) -> bytes:
    # Not ASCII: there an emoji and its two surrogates have the same text.
    return sha256(utf8_bytes(json.dumps(data, ensure_ascii=False))).digest()

"""JSON values as one exact text, and the hash of it."""

from __future__ import annotations

import hashlib
import json
from typing import Any, cast


def exact(value: Any) -> str:
    """The JSON value as text: sorted keys, no spaces."""
    return json.dumps(value, ensure_ascii=False, sort_keys=True, separators=(",", ":"), allow_nan=False)


def digest_of_tagged(tagged: Any) -> str:
    """`sha256:` and the hash of what `values.tag` gave. The tags are not tagged again: that would be another value."""
    return "sha256:" + hashlib.sha256(exact(tagged).encode("utf-8", "surrogatepass")).hexdigest()


def in_order(tagged: Any) -> Any:
    """The tagged value with the pairs of its mappings sorted, as equal mappings may have them in any order."""
    if isinstance(tagged, list):
        return [in_order(item) for item in cast("list[Any]", tagged)]
    if not isinstance(tagged, dict):
        return tagged
    found = {key: in_order(item) for key, item in cast("dict[str, Any]", tagged).items()}
    if found.get("$t") == "dict" and isinstance(found.get("v"), list):
        found["v"] = sorted(found["v"], key=exact)
    return found

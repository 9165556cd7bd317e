"""The exact JSON text of a value, and its hash."""

from __future__ import annotations

import hashlib
import json
from typing import Any, cast


def exact(value: Any) -> str:
    """Returns the JSON text of a value, with sorted keys and no spaces."""
    return json.dumps(value, ensure_ascii=False, sort_keys=True, separators=(",", ":"), allow_nan=False)


def digest_of_tagged(tagged: Any) -> str:
    """Returns `sha256:` and the hash of a value that `values.tag` tagged. Tagging it again would change the value."""
    return "sha256:" + hashlib.sha256(exact(tagged).encode("utf-8", "surrogatepass")).hexdigest()


def in_order(tagged: Any) -> Any:
    """Sorts the pairs of tagged mappings, because equal mappings may list them in any order."""
    if isinstance(tagged, list):
        return [in_order(item) for item in cast("list[Any]", tagged)]
    if not isinstance(tagged, dict):
        return tagged
    found = {key: in_order(item) for key, item in cast("dict[str, Any]", tagged).items()}
    if found.get("$t") == "dict" and isinstance(found.get("v"), list):
        found["v"] = sorted(found["v"], key=exact)
    return found

"""Exact JSON text of a value, its hash, and a fast JSON encoder."""

from __future__ import annotations

import hashlib
import json
import json.encoder
from collections.abc import Callable
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


def dumper(refuse: Callable[[Any], Any], *, sort_keys: bool = False, allow_nan: bool = False) -> Callable[[Any], str]:
    """Returns a function that encodes a value without spaces. `refuse` receives values of other types and must raise.

    Call it once and keep the function. A JSONEncoder builds its inner encoder again for every value, at four times the
    cost of a small value. Circular references are not detected; they end in a RecursionError.
    """
    make = getattr(json.encoder, "c_make_encoder", None)
    quote = getattr(json.encoder, "c_encode_basestring", None)
    if make is None or quote is None:
        return json.JSONEncoder(
            ensure_ascii=False,
            check_circular=False,
            allow_nan=allow_nan,
            separators=(",", ":"),
            sort_keys=sort_keys,
            default=refuse,
        ).encode
    encoder = make(None, refuse, quote, None, ":", ",", sort_keys, False, allow_nan)
    join = "".join
    return lambda value: join(encoder(value, 0))

"""A fast JSON encoder for values that consist of JSON types only."""

from __future__ import annotations

import json
import json.encoder
from collections.abc import Callable
from typing import Any


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

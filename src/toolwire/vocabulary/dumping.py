"""JSON text of values that are made of JSON types only, for what is written on every call."""

from __future__ import annotations

import json
import json.encoder
from collections.abc import Callable
from typing import Any


def dumper(refuse: Callable[[Any], Any], *, sort_keys: bool = False, allow_nan: bool = False) -> Callable[[Any], str]:
    """What gives a value's text, without spaces. `refuse` is given what is of no JSON type, and raises.

    Made once: a JSONEncoder makes its own inner encoder anew for every value, at four times the cost of a small one.
    What holds itself is not looked for: it ends as a RecursionError.
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

"""Which format a reply is in."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from toolwire.protocols.base import CallingProtocol


def recognise_among(protocols: Mapping[str, CallingProtocol], reply: Any) -> str | None:
    """The name of the protocol whose format a reply is plainly in; None when it is in none.

    A value of one format may hold a text in another. Where several protocols recognise the reply, it is in the one
    that makes calls of it and leaves nothing outside of them that another would recognise.
    """
    found = [name for name, protocol in protocols.items() if protocol.recognises(reply)]
    if len(found) < 2:
        return found[0] if found else None
    # ATTP, the first, looks for its document anywhere and calls the rest prose: the others are asked before it.
    for name in reversed(found):
        read = protocols[name].parse(reply)
        is_around = any(protocols[other].recognises(read.text) for other in found if other != name)
        if (read.calls or read.failure is not None) and not is_around:
            return name
    return found[0]

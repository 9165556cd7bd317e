"""Detection of the format of a reply."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from toolwire.protocols.base import CallingProtocol


def recognise_among(protocols: Mapping[str, CallingProtocol], reply: Any) -> str | None:
    """Returns the name of the protocol that the reply is clearly written in, or None.

    A value in one format can contain text in another. If several protocols recognise the reply, the outermost one is
    chosen. Its calls leave no text that another protocol would recognise.
    """
    found = [name for name, protocol in protocols.items() if protocol.recognises(reply)]
    if len(found) < 2:
        return found[0] if found else None
    # ATTP is first. It finds its document anywhere and takes the rest for prose, so the others are tried before it.
    for name in reversed(found):
        read = protocols[name].parse(reply)
        is_around = any(protocols[other].recognises(read.text) for other in found if other != name)
        if (read.calls or read.failure is not None) and not is_around:
            return name
    return found[0]

"""`prefix=`: names for the tools of an instance, so that several instances can be registered side by side."""

from __future__ import annotations

import re

from toolwire.protocols.tool_names import PROVIDER_NAME_LIMIT
from toolwire.vocabulary.errors import DefinitionError

_PREFIX = re.compile(r"[A-Za-z](?:[A-Za-z0-9_]*[A-Za-z0-9])?")
"""Names that programs and all providers accept unchanged, so that no model sees another spelling."""


def check_prefix(prefix: object, name: str | None, thing: object) -> None:
    """Raises if the prefix cannot stand before the tools of an instance.

    Raises:
        DefinitionError: models could not spell it, a name is given too, or `thing` is a single tool.
    """
    if not isinstance(prefix, str) or _PREFIX.fullmatch(prefix) is None:
        raise DefinitionError(
            f"prefix={prefix!r:.80}: write ASCII letters, digits and '_' with a letter first, and no '_' at the end: "
            "prefix='mail' makes mail_send of send"
        )
    if name is not None:
        raise DefinitionError(f"name={name!r} beside prefix={prefix!r:.80}: give one of them")
    if isinstance(thing, type) or hasattr(thing, "__tool__") or callable(thing):
        raise DefinitionError(
            f"prefix={prefix!r:.80} for {thing!r:.80}: only an instance with several tools has a prefix, "
            "give name='...'"
        )


def prefixed(prefix: str, name: str) -> str:
    """Returns the tool's name with the prefix and `_` before it.

    Raises:
        DefinitionError: the name is too long for providers, which would cut it.
    """
    whole = f"{prefix}_{name}"
    if len(whole) > PROVIDER_NAME_LIMIT:
        raise DefinitionError(
            f"prefix={prefix!r:.80}: the name of its tool {name!r} would have {len(whole)} characters, and models are "
            f"told of {PROVIDER_NAME_LIMIT}: write a shorter prefix"
        )
    return whole

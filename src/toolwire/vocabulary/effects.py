"""The declarations of a tool: its effects, its idempotency and the labels of its results."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Set
from dataclasses import dataclass
from typing import Any, Literal

Effect = Literal["read", "write", "send", "exec", "spend"]
"""read: only looks. write: changes stored data. send: sends data out. exec: runs given code. spend: costs money."""

Idempotency = Literal["no", "key", "natural"]
"""no: never repeat a call. key: repeat it with the same key, which the tool recognises. natural: repeat it at will,
because a second call changes nothing.
"""

Label = Literal["untrusted", "private"]
"""untrusted: the author of the result is unknown. private: the result is confidential."""

Reconcile = Callable[[str], Any]
"""After a crash, tells whether the call with this key took effect: "done", "not_done", "unknown", or an awaitable."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """The things that a conversation has read, for a tool that declares `effects_of`.

    Attributes:
        urls: URLs that stood whole in results, exactly as they were written there.
    """

    urls: Set[str] = frozenset()


EffectsOf = Callable[[Mapping[str, Any], Seen], Iterable[Effect]]
"""Returns the effects of one call, from its arguments as plain JSON and from what the conversation has read."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Effects:
    """The declarations of a tool. They grant nothing: an undeclared tool is never repeated without approval.

    Attributes:
        kinds: The effects of a call; empty if undeclared.
        idempotent: Whether a call with a lost outcome may be repeated.
        labels: The labels of its results.
        reconcile: Finds out whether a call took effect; None if that is impossible.
        of_call: Returns the effects of one call, a part of `kinds`; None if each call has all of them.
    """

    kinds: frozenset[Effect] = frozenset()
    idempotent: Idempotency = "no"
    labels: frozenset[Label] = frozenset()
    reconcile: Reconcile | None = None
    of_call: EffectsOf | None = None

    @property
    def has_key(self) -> bool:
        """True if each call of the tool receives an idempotency key."""
        return self.idempotent == "key" or self.reconcile is not None


UNDECLARED = Effects()

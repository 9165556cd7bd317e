"""What a tool declares: what it does, whether it may be done twice, what its results are."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

Effect = Literal["read", "write", "send", "exec", "spend"]
"""read: looks; write: changes what is kept; send: tells somebody outside; exec: runs what it is given; spend: costs."""

Idempotency = Literal["no", "key", "natural"]
"""Whether a call may be made twice: never; with the same key, by which the tool knows it again; or as often as wanted,
because the second time changes nothing more."""

Label = Literal["untrusted", "private"]
"""What a result is: untrusted, written by who knows whom; private, not for everybody's eyes."""

Reconciled = Literal["done", "not_done", "unknown"]
Reconcile = Callable[[str], Any]
"""Asked after a crash whether the call of this key took effect: gives a `Reconciled`, or an awaitable of one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Effects:
    """What a tool declares. Declaring nothing grants nothing: an undeclared tool is never run a second time unasked."""

    kinds: frozenset[Effect] = frozenset()
    """What a call does; empty when nobody said."""
    idempotent: Idempotency = "no"
    """Whether a call whose outcome was lost may be made again."""
    labels: frozenset[Label] = frozenset()
    """What its results are."""
    reconcile: Reconcile | None = None
    """Finds out whether a call took effect; None when nobody can."""

    @property
    def has_key(self) -> bool:
        """Whether each call of the tool is given an idempotency key."""
        return self.idempotent == "key" or self.reconcile is not None


UNDECLARED = Effects()

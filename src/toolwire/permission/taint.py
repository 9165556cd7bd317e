"""The guard on runs that have read both private and untrusted data: tools that send need approval then.

The guard proves nothing: it relies on the effects that tools declare, and treats a run as a whole.
"""

from __future__ import annotations

from toolwire.permission.rule import Subject

_BOTH = frozenset({"untrusted", "private"})


def gate_reason(subject: Subject) -> str:
    """Returns why a person must decide regardless of the rules; empty if the guard does not apply."""
    if not subject.taints >= _BOTH:
        return ""
    if "send" in subject.effects:
        return "this run has read private data and text of strangers, and the tool sends"
    if subject.is_outside and not subject.effects:
        return "this run has read private data and text of strangers, and nobody said whether this outside tool sends"
    return ""

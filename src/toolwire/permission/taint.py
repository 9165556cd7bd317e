"""The guard on runs that have read what is private and what strangers wrote: tools that send then ask first.

It is a guard and no proof: it knows what tools say of themselves, and takes a run as a whole.
"""

from __future__ import annotations

from toolwire.permission.rule import Subject

_BOTH = frozenset({"untrusted", "private"})


def gate_reason(subject: Subject) -> str:
    """Why a person has to be asked, whatever the rules say; empty when the guard has nothing against the call."""
    if not subject.taints >= _BOTH:
        return ""
    if "send" in subject.effects:
        return "this run has read private data and text of strangers, and the tool sends"
    if subject.is_outside and not subject.effects:
        return "this run has read private data and text of strangers, and nobody said whether this outside tool sends"
    return ""

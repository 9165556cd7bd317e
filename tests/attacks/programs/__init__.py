"""The corpus. Each module is a family; each program is read after the names of `attack.prelude`."""

from __future__ import annotations

from tests.attacks.attack import Attack
from tests.attacks.programs import (
    attribute_walks,
    byte_code,
    debugging,
    descriptors,
    forged_frames,
    formats,
    frames,
    hostile_results,
    left_behind,
    memory,
    modules,
    output,
    policy,
    proc,
    processes,
    processor,
    signals,
    sockets,
    tampering,
)

FAMILIES = (
    attribute_walks,
    frames,
    formats,
    byte_code,
    descriptors,
    proc,
    sockets,
    processes,
    signals,
    debugging,
    memory,
    modules,
    output,
    processor,
    forged_frames,
    hostile_results,
    tampering,
    left_behind,
    policy,
)
CORPUS: tuple[Attack, ...] = tuple(attack for module in FAMILIES for attack in module.ATTACKS)

"""What one program may use. Each limit is a clock or a counter of its own."""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass

from toolwire.vocabulary.errors import ConfigurationError


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """What one program may use; whichever is reached first stops it, and what it printed until then is kept.

    Raises:
        ConfigurationError: a limit that is not a positive number.
    """

    wall_s: float = 10
    """Seconds the program itself may take; time spent waiting for tools does not count."""
    cpu_s: int = 10
    """Whole seconds of processor time, as the kernel counts them."""
    memory_mb: int = 256
    """MiB of address space above what the bare interpreter needs; beyond it the program gets a MemoryError."""
    deadline_s: float = 60
    """Seconds from start to end, tools included."""
    output_bytes: int = 262_144
    """Bytes of printed text that are kept. What is printed beyond it is counted and dropped."""
    output_flood_bytes: int = 16_777_216
    """Bytes of printed text at which a program is stopped: it no longer says anything to anyone."""
    result_bytes: int = 1_048_576
    """Bytes of the encoded result."""
    calls: int = 1000
    """Tool calls one program may make."""
    outstanding_calls: int = 64
    """Tool calls of one program that may wait for an answer at the same time; more wait in the program."""
    call_bytes: int = 4_194_304
    """Bytes of one call's encoded arguments, and of one encoded answer."""
    source_bytes: int = 65_536
    """Bytes of source text, in UTF-8."""

    @classmethod
    def within(cls, seconds: float) -> Limits:
        """One clock for all: nothing finer stops a program before its `seconds` are over, tools included."""
        return cls(deadline_s=seconds, wall_s=seconds, cpu_s=math.ceil(seconds))

    def __post_init__(self) -> None:
        for field in dataclasses.fields(self):
            value = getattr(self, field.name)
            if isinstance(value, bool) or not isinstance(value, int | float) or not value > 0:
                raise ConfigurationError(f"Limits({field.name}={value!r}): give a number above 0")

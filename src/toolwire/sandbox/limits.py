"""The resources that one program may use. Each limit has its own clock or counter."""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass

from toolwire.vocabulary.calls import CLEANUP_S, PROGRAM_TIME_S
from toolwire.vocabulary.errors import ConfigurationError


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """The resources that one program may use. The first limit that is reached stops it; its output until then is kept.

    Attributes:
        wall_s: Seconds that the program itself may run; the time in which it waits for tools does not count.
        cpu_s: Whole seconds of processor time, as the kernel counts them.
        memory_mb: MiB of address space above the bare interpreter's need; beyond it the program gets a MemoryError.
        deadline_s: Seconds from start to end, tools included; `PROGRAM_TIME_S` by default.
        cleanup_s: Seconds that the calls which a program has left get for their clean-up, after its end. The turn waits
            for them, at most so long, and then says which of them still run. `CLEANUP_S` by default: enough to close
            connections and delete temporary files. A turn without programs has the same limit.
        output_bytes: Bytes of printed text that are kept. Text beyond it is counted and dropped.
        output_flood_bytes: Bytes of printed text at which a program is stopped, as a runaway loop.
        result_bytes: Bytes of the encoded result.
        calls: Tool calls that one program may make.
        outstanding_calls: Tool calls of one program that may wait for an answer at the same time; more wait in the
            program.
        call_bytes: Bytes of one call's encoded arguments, and of one encoded answer.
        source_bytes: Bytes of source text, in UTF-8.

    Raises:
        ConfigurationError: a limit is not a positive number.
    """

    wall_s: float = 10
    cpu_s: int = 10
    memory_mb: int = 256
    deadline_s: float = PROGRAM_TIME_S
    cleanup_s: float = CLEANUP_S
    output_bytes: int = 262_144
    output_flood_bytes: int = 16_777_216
    result_bytes: int = 1_048_576
    calls: int = 1000
    outstanding_calls: int = 64
    call_bytes: int = 4_194_304
    source_bytes: int = 65_536

    @classmethod
    def within(cls, seconds: float) -> Limits:
        """Returns limits with one clock of `seconds`, tools included. Other limits keep their defaults."""
        return cls(deadline_s=seconds, wall_s=seconds, cpu_s=math.ceil(seconds))

    def __post_init__(self) -> None:
        for field in dataclasses.fields(self):
            value = getattr(self, field.name)
            if isinstance(value, bool) or not isinstance(value, int | float) or not value > 0:
                raise ConfigurationError(f"Limits({field.name}={value!r}): give a number above 0")


def require_limits(limits: object) -> Limits:
    """Returns the limits.

    Raises:
        ConfigurationError: They are another value, such as a number or a dict.
    """
    if isinstance(limits, Limits):
        return limits
    raise ConfigurationError(f"limits={limits!r:.80}: write limits=Limits(deadline_s=30)")

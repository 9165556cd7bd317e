"""The class of an attack, and the names that every attacking program starts with."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

from toolwire import Limits

Sign = Literal[
    "got through",
    "file secret",
    "environment secret",
    "memory secret",
    "file created",
    "file changed",
    "tcp",
    "udp",
    "unix",
    "signal",
    "process",
    "tool",
    "false log",
    "zygote",
    "host fault",
    "over limit",
]
"""The trace by which the host recognises a successful attack.

`got through`: the token backwards in the output, printed by code that only runs where the wall should be. `tool`: a
tool ran that was not granted to any program. `false log`: a tool ran without a log entry. `zygote`: the fork server is
another one afterwards. `host fault`: the host raised something untyped, hung, died or grew.
`over limit`: the program had more time, memory or output than it was given.
"""

Control = Literal["open child", "naive host", "higher limits", "no policy", "none"]
"""The place in which the same source succeeds.

`open child`: our own child process without any of its layers. `naive host`: a host that runs programs in its own
process, unpickles their results and believes every frame. `higher limits`: our sandbox with the limit raised.
`no policy`: our sandbox with a registry that permits every tool.
"""


USUAL_LIMITS = Limits(wall_s=3, cpu_s=3, deadline_s=6, memory_mb=64)


@dataclass(frozen=True, slots=True, kw_only=True)
class Attack:
    """One hostile program."""

    name: str
    """Distinct within its family."""
    tries: str
    """The attempt, in a line."""
    sign: Sign
    """The sign by which the host sees the success; the control asserts it, and every other sign counts as well."""
    source: str
    """The program, to be read after the names of `prelude`."""
    then: str = ""
    """A second program, run afterwards by the same host: the attack succeeds if it sees a trace of the first."""
    control: Control = "open child"
    """The place in which it succeeds."""
    needs_root: bool = False
    """Its control succeeds for root only; to others the kernel refuses it anyway."""
    why_no_control: str = ""
    """For control `none`: why nothing may run it without its wall."""
    limits: Limits = USUAL_LIMITS
    """The names that the program is given."""
    higher_limits: Limits | None = None
    """For control `higher limits`."""
    family: str = ""
    """Filled in by `family`."""
    threat: int = 48
    """The row of the threat table, filled in by `family`."""

    def __str__(self) -> str:
        return f"{self.family}: {self.name}"


def family(name: str, *, threat: int, attacks: list[Attack], prelude: str = "") -> tuple[Attack, ...]:
    """The attacks of one family, each starting with the family's own `prelude`."""
    return tuple(
        replace(attack, family=name, threat=threat, source=prelude + attack.source, then=attack.then)
        for attack in attacks
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Targets:
    """The programs' knowledge of the host's canaries. Every item is a variable of the program, in capitals."""

    token: str
    """Its reverse in the output is the sign `got through`."""
    secret_file: str
    """Path of a file that anyone may read."""
    new_file: str
    """Path that does not exist, in a folder that anyone may write to."""
    changed_file: str
    """Path of a file that anyone may write to."""
    tcp_port: int
    """On 127.0.0.1, listening."""
    udp_port: int
    """On 127.0.0.1, bound."""
    unix_path: str
    """A listening stream socket that anyone may connect to."""
    unix_name: str
    """The same by an abstract name, without its leading NUL."""
    canary: int
    """A process of the host that reports signals and holds a secret in its memory and in its environment."""
    canary_address: int
    """The address in its memory; 32 bytes of text."""


_WAYS = '''\
# What every attacker finds in one step. None of it is protected, none of it needs an import.
os, sys = random._os, statistics.sys
def got_through():
    print(TOKEN[::-1])
def native():
    """ctypes as it was before it was dropped from sys.modules: its classes are still in memory."""
    found = next(kind for kind in object.__subclasses__() if kind.__name__ == "CDLL")
    return type("ctypes", (), {name: value for name, value in found.__init__.__globals__.items()
                               if not callable(value) or isinstance(value, type)} | {
        name: staticmethod(value) for name, value in found.__init__.__globals__.items()
        if callable(value) and not isinstance(value, type)})
def system_call(number, *arguments):
    """The kernel's answer to any call there is; below 0: minus its errno."""
    ctypes = native()
    function = ctypes.CDLL(None, use_errno=True).syscall
    function.restype = ctypes.c_long
    given = [ctypes.c_long(item) if isinstance(item, int) else item for item in arguments]
    answer = function(ctypes.c_long(number), *given)
    return answer if answer != -1 else -ctypes.get_errno()
def sockets():
    """The socket module, which asyncio has kept."""
    return next(kind for kind in object.__subclasses__() if kind.__name__ == "TransportSocket").__init__.__globals__[
        "socket"]
'''


def prelude(targets: Targets) -> str:
    """The first lines of every attacking program."""
    names = "".join(f"{name.upper()} = {getattr(targets, name)!r}\n" for name in Targets.__slots__)
    return names + _WAYS

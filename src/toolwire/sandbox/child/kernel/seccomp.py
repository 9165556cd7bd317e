"""The filter of system calls: refuses unlisted calls with EPERM.

A filter that kills by default makes honest programs die at random under load. This filter kills only for calls that no
honest program makes: tracing, loading code into the kernel, another namespace, another architecture's calls.
"""

import ctypes
from collections.abc import Callable
from dataclasses import dataclass

from . import syscalls
from .syscalls import Architecture

TO_HOST = 3
"""The descriptor that a child writes to."""
FROM_HOST = 4
"""The descriptor that a child reads from. Both together are its channel."""
ALLOWED = (
    "munmap",
    "mremap",
    "brk",
    "futex",
    # Not rt_sigqueueinfo: it sends signals.
    "rt_sigaction",
    "rt_sigprocmask",
    "rt_sigreturn",
    "rt_sigpending",
    "rt_sigsuspend",
    "rt_sigtimedwait",
    "sigaltstack",
    "exit",
    "exit_group",
    "clock_gettime",
    "clock_getres",
    "nanosleep",
    "clock_nanosleep",
    "getrandom",
    "sched_yield",
    "restart_syscall",
    # These cannot fail. A refused getppid would return -1, and kill(-1) means every process.
    "getpid",
    "getppid",
    "gettid",
    "getuid",
    "geteuid",
    "getgid",
    "getegid",
)
READING = ("read",)
WRITING = ("write",)
"""Allowed on the channel's own descriptors, each in its one direction."""
NOT_EXECUTABLE = ("mmap", "mprotect")
"""Allowed unless the memory is to be executed."""
ADVICE = ("madvise",)
"""Allowed for the advice that allocators give. Other advice splits huge pages, poisons memory or pins it."""
ABSENT = ("clone3",)
"""Answered with ENOSYS: the C library then tries the older call, which gets EPERM."""
KILLED = (
    "ptrace",
    "bpf",
    "io_uring_setup",
    "io_uring_enter",
    "io_uring_register",
    "userfaultfd",
    "keyctl",
    "process_vm_readv",
    "process_vm_writev",
    "perf_event_open",
    "mount",
    "umount2",
    "pivot_root",
    "open_tree",
    "move_mount",
    "fsopen",
    "fsconfig",
    "fsmount",
    "fspick",
    "mount_setattr",
    "setns",
    "unshare",
    "kexec_load",
    "kexec_file_load",
    "init_module",
    "finit_module",
    "delete_module",
    "prctl",
    "seccomp",
)

_KEPT: list[object] = []
"""Keeps alive the memory that the kernel reads when a child loads its filter."""

RETURN_ALLOW = 0x7FFF0000
RETURN_KILL_PROCESS = 0x80000000
RETURN_EPERM = 0x00050000 | 1
RETURN_ENOSYS = 0x00050000 | 38

_LOAD_WORD = 0x20
_JUMP_EQUAL = 0x15
_JUMP_NOT_BELOW = 0x35
_JUMP_ANY_BIT = 0x45
_RETURN = 0x06
_NUMBER_OFFSET = 0
_ARCHITECTURE_OFFSET = 4
_ARGUMENTS_OFFSET = 16
_X32_BIT = 0x40000000
_PROT_EXEC = 4
_ADVICE_ALLOWED = (4, 8, 14)
"""MADV_DONTNEED, MADV_FREE, MADV_HUGEPAGE."""
_PR_SET_SECCOMP = 22
_SECCOMP_MODE_FILTER = 2


@dataclass(frozen=True, slots=True)
class Instruction:
    """One instruction of classic BPF; jumps count instructions from the following one."""

    code: int
    if_true: int
    if_false: int
    operand: int


def instructions(architecture: Architecture) -> list[Instruction]:
    """Returns the filter for one architecture. BPF jumps only forward, so the outcomes come after their questions."""
    numbers = architecture.numbers
    answers: dict[str, list[Instruction]] = {
        "refuse": [_return(RETURN_EPERM)],
        "read": _only_if(_JUMP_EQUAL, argument=0, operand=FROM_HOST),
        "write": _only_if(_JUMP_EQUAL, argument=0, operand=TO_HOST),
        "memory": _unless(_JUMP_ANY_BIT, argument=2, operand=_PROT_EXEC),
        "advice": _only_one_of(_ADVICE_ALLOWED, argument=2),
        "absent": [_return(RETURN_ENOSYS)],
        "allow": [_return(RETURN_ALLOW)],
        "kill": [_return(RETURN_KILL_PROCESS)],
    }
    listed = {
        "read": READING,
        "write": WRITING,
        "memory": NOT_EXECUTABLE,
        "advice": ADVICE,
        "allow": ALLOWED,
        "absent": ABSENT,
        "kill": KILLED,
    }
    by_number = {numbers[name]: answer for answer, names in listed.items() for name in names}
    ranges = _ranges(by_number, "kill" if architecture.has_x32 else "refuse")
    places: dict[str, int] = {}
    end = len(ranges) - 1
    for name, answer in answers.items():
        places[name] = end
        end += len(answer)
    return [
        _load(_ARCHITECTURE_OFFSET),
        Instruction(_JUMP_EQUAL, 1, 0, architecture.audit),
        _return(RETURN_KILL_PROCESS),
        _load(_NUMBER_OFFSET),
        *_questions([(bound, places[answer]) for bound, answer in ranges], 0),
        *(step for answer in answers.values() for step in answer),
    ]


def _ranges(by_number: dict[int, str], from_x32: str) -> list[tuple[int, str]]:
    """Returns the start of each range of numbers with the same answer; from bit 30 on, all have one answer."""
    found = [(0, by_number.get(0, "refuse"))]
    for bound in sorted({edge for number in by_number for edge in (number, number + 1)}):
        answer = by_number.get(bound, "refuse")
        if answer != found[-1][1]:
            found.append((bound, answer))
    return [*found, (_X32_BIT, from_x32)]


def _questions(ranges: list[tuple[int, int]], place: int) -> list[Instruction]:
    """Halves the ranges until one is left, and jumps to its place.

    When a filter is loaded, the kernel runs it for every call number, to learn which numbers are always allowed. That
    takes time in proportion to the paths: with all questions in a row, loading took twice as long.
    """
    if len(ranges) == 1:
        return []
    middle = len(ranges) // 2
    below, above = ranges[:middle], ranges[middle:]
    first = _questions(below, place + 1)
    second = _questions(above, place + 1 + len(first))
    to_below = 0 if first else below[0][1] - place - 1
    to_above = len(first) if second else above[0][1] - place - 1
    return [Instruction(_JUMP_NOT_BELOW, to_above, to_below, above[0][0]), *first, *second]


def loader() -> Callable[[], object] | None:
    """Returns a function that puts the calling process under this machine's filter permanently; None without a filter.

    All data is prepared here: a child makes only the one call.
    """
    architecture = syscalls.here()
    if architecture is None:
        return None
    program = instructions(architecture)
    filters = (_Filter * len(program))(*((one.code, one.if_true, one.if_false, one.operand) for one in program))
    head = _FilterProgram(len(program), filters)
    _KEPT.append(head)
    return syscalls.prepare_quick_call("prctl", _PR_SET_SECCOMP, _SECCOMP_MODE_FILTER, ctypes.addressof(head))


class _Filter(ctypes.Structure):
    """struct sock_filter"""

    _fields_ = (
        ("code", ctypes.c_uint16),
        ("jt", ctypes.c_uint8),
        ("jf", ctypes.c_uint8),
        ("k", ctypes.c_uint32),
    )


class _FilterProgram(ctypes.Structure):
    """struct sock_fprog"""

    _fields_ = (("len", ctypes.c_ushort), ("filter", ctypes.POINTER(_Filter)))


def _load(offset: int) -> Instruction:
    return Instruction(_LOAD_WORD, 0, 0, offset)


def _return(value: int) -> Instruction:
    return Instruction(_RETURN, 0, 0, value)


def _argument(index: int) -> Instruction:
    """The lower half: a descriptor is an int, and all relevant bits of `prot` are in the lower half."""
    return _load(_ARGUMENTS_OFFSET + 8 * index)


def _only_if(jump: int, *, argument: int, operand: int) -> list[Instruction]:
    return [_argument(argument), Instruction(jump, 0, 1, operand), _return(RETURN_ALLOW), _return(RETURN_EPERM)]


def _unless(jump: int, *, argument: int, operand: int) -> list[Instruction]:
    return [_argument(argument), Instruction(jump, 0, 1, operand), _return(RETURN_EPERM), _return(RETURN_ALLOW)]


def _only_one_of(operands: tuple[int, ...], *, argument: int) -> list[Instruction]:
    count = len(operands)
    questions = [Instruction(_JUMP_EQUAL, count - place, 0, operand) for place, operand in enumerate(operands)]
    return [_argument(argument), *questions, _return(RETURN_EPERM), _return(RETURN_ALLOW)]

"""The filter of system calls: what is not listed is refused with EPERM.

A filter that kills by default makes honest programs die at random under load. Killed is only who asks for what no
program of ours can mean: tracing, loading code into the kernel, another namespace, another architecture's calls.
"""

import ctypes
from collections.abc import Callable
from dataclasses import dataclass

from . import syscalls
from .syscalls import Architecture

CHANNEL = 3
ALLOWED = (
    "munmap",
    "mremap",
    "brk",
    "madvise",
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
    # These cannot fail. Refused, getppid would give -1, and kill(getppid()) mean everybody.
    "getpid",
    "getppid",
    "gettid",
    "getuid",
    "geteuid",
    "getgid",
    "getegid",
)
ON_CHANNEL = ("read", "write")
"""Allowed on the channel's descriptor alone."""
NOT_EXECUTABLE = ("mmap", "mprotect")
"""Allowed unless the memory is to be executed."""
ABSENT = ("clone3",)
"""Answered with ENOSYS: the C library then tries the older call, and takes its refusal for what it is."""
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
    """The filter for one architecture. Jumps go forward only, so each outcome is written behind its questions."""
    numbers = architecture.numbers
    answers: dict[str, list[Instruction]] = {
        "channel": _only_if(_JUMP_EQUAL, argument=0, operand=CHANNEL),
        "memory": _unless(_JUMP_ANY_BIT, argument=2, operand=_PROT_EXEC),
        "absent": [_return(RETURN_ENOSYS)],
        "allow": [_return(RETURN_ALLOW)],
        "kill": [_return(RETURN_KILL_PROCESS)],
    }
    # The most frequent first: whatever looks at an argument, the kernel asks the filter about each time.
    questions = [
        *((_JUMP_EQUAL, numbers[name], "channel") for name in ON_CHANNEL),
        *((_JUMP_EQUAL, numbers[name], "memory") for name in NOT_EXECUTABLE),
        *((_JUMP_EQUAL, numbers[name], "allow") for name in ALLOWED),
        *((_JUMP_EQUAL, numbers[name], "absent") for name in ABSENT),
        *((_JUMP_EQUAL, numbers[name], "kill") for name in KILLED),
    ]
    if architecture.has_x32:
        questions.insert(0, (_JUMP_NOT_BELOW, _X32_BIT, "kill"))
    places: dict[str, int] = {}
    tail = [_return(RETURN_EPERM)]
    for name, answer in answers.items():
        places[name] = len(questions) + len(tail)
        tail += answer
    return [
        _load(_ARCHITECTURE_OFFSET),
        Instruction(_JUMP_EQUAL, 1, 0, architecture.audit),
        _return(RETURN_KILL_PROCESS),
        _load(_NUMBER_OFFSET),
        *(
            Instruction(code, places[answer] - position - 1, 0, operand)
            for position, (code, operand, answer) in enumerate(questions)
        ),
        *tail,
    ]


def loader() -> Callable[[], None] | None:
    """What puts the calling process under this machine's filter, for good; None where there is no filter for it.

    Everything is laid out beforehand: a child only makes the one call.
    """
    architecture = syscalls.here()
    if architecture is None:
        return None
    program = instructions(architecture)
    filters = (_Filter * len(program))(*((one.code, one.if_true, one.if_false, one.operand) for one in program))
    head = _Program(len(program), filters)
    prctl = ctypes.CDLL(None, use_errno=True).prctl

    def load() -> None:
        if prctl(_PR_SET_SECCOMP, _SECCOMP_MODE_FILTER, ctypes.byref(head), 0, 0):
            raise OSError(ctypes.get_errno(), "prctl(PR_SET_SECCOMP)")

    return load


class _Filter(ctypes.Structure):
    """struct sock_filter"""

    _fields_ = (
        ("code", ctypes.c_uint16),
        ("jt", ctypes.c_uint8),
        ("jf", ctypes.c_uint8),
        ("k", ctypes.c_uint32),
    )


class _Program(ctypes.Structure):
    """struct sock_fprog"""

    _fields_ = (("len", ctypes.c_ushort), ("filter", ctypes.POINTER(_Filter)))


def _load(offset: int) -> Instruction:
    return Instruction(_LOAD_WORD, 0, 0, offset)


def _return(value: int) -> Instruction:
    return Instruction(_RETURN, 0, 0, value)


def _argument(index: int) -> Instruction:
    """The lower half: a descriptor is an int, and no bit of `prot` that matters is in the upper one."""
    return _load(_ARGUMENTS_OFFSET + 8 * index)


def _only_if(jump: int, *, argument: int, operand: int) -> list[Instruction]:
    return [_argument(argument), Instruction(jump, 0, 1, operand), _return(RETURN_ALLOW), _return(RETURN_EPERM)]


def _unless(jump: int, *, argument: int, operand: int) -> list[Instruction]:
    return [_argument(argument), Instruction(jump, 0, 1, operand), _return(RETURN_EPERM), _return(RETURN_ALLOW)]

"""System calls by number, for both supported processors, and a way to make calls that have no wrapper."""

import ctypes
import errno
import os
import platform
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

_ARGUMENTS = 6


@dataclass(frozen=True, slots=True, kw_only=True)
class Architecture:
    """The data that differs between processors.

    Attributes:
        audit: Its id in a seccomp filter: AUDIT_ARCH_* of <linux/audit.h>.
        numbers: Numbers of system calls by name.
        has_x32: True if numbers with bit 30 are a second set of calls, which our filter does not examine.
    """

    audit: int
    numbers: dict[str, int]
    has_x32: bool


# Calls that were added since 2019 have one number on all processors.
_EVERYWHERE = {
    "io_uring_setup": 425,
    "io_uring_enter": 426,
    "io_uring_register": 427,
    "open_tree": 428,
    "move_mount": 429,
    "fsopen": 430,
    "fsconfig": 431,
    "fsmount": 432,
    "fspick": 433,
    "clone3": 435,
    "close_range": 436,
    "mount_setattr": 442,
    "landlock_create_ruleset": 444,
    "landlock_restrict_self": 446,
}
X86_64 = Architecture(
    audit=0xC000003E,
    has_x32=True,
    numbers=_EVERYWHERE
    | {
        "read": 0,
        "write": 1,
        "mmap": 9,
        "mprotect": 10,
        "munmap": 11,
        "brk": 12,
        "rt_sigaction": 13,
        "rt_sigprocmask": 14,
        "rt_sigreturn": 15,
        "sched_yield": 24,
        "mremap": 25,
        "madvise": 28,
        "nanosleep": 35,
        "getpid": 39,
        "clone": 56,
        "exit": 60,
        "uname": 63,
        "ptrace": 101,
        "getuid": 102,
        "getgid": 104,
        "geteuid": 107,
        "getegid": 108,
        "getppid": 110,
        "capget": 125,
        "capset": 126,
        "rt_sigpending": 127,
        "rt_sigtimedwait": 128,
        "rt_sigsuspend": 130,
        "sigaltstack": 131,
        "pivot_root": 155,
        "prctl": 157,
        "mount": 165,
        "umount2": 166,
        "init_module": 175,
        "delete_module": 176,
        "gettid": 186,
        "futex": 202,
        "restart_syscall": 219,
        "clock_gettime": 228,
        "clock_getres": 229,
        "clock_nanosleep": 230,
        "exit_group": 231,
        "kexec_load": 246,
        "keyctl": 250,
        "unshare": 272,
        "perf_event_open": 298,
        "setns": 308,
        "process_vm_readv": 310,
        "process_vm_writev": 311,
        "finit_module": 313,
        "seccomp": 317,
        "getrandom": 318,
        "kexec_file_load": 320,
        "bpf": 321,
        "userfaultfd": 323,
    },
)
AARCH64 = Architecture(
    audit=0xC00000B7,
    has_x32=False,
    numbers=_EVERYWHERE
    | {
        "umount2": 39,
        "mount": 40,
        "pivot_root": 41,
        "read": 63,
        "write": 64,
        "capget": 90,
        "capset": 91,
        "exit": 93,
        "exit_group": 94,
        "unshare": 97,
        "futex": 98,
        "nanosleep": 101,
        "kexec_load": 104,
        "init_module": 105,
        "delete_module": 106,
        "clock_gettime": 113,
        "clock_getres": 114,
        "clock_nanosleep": 115,
        "ptrace": 117,
        "sched_yield": 124,
        "restart_syscall": 128,
        "sigaltstack": 132,
        "rt_sigsuspend": 133,
        "rt_sigaction": 134,
        "rt_sigprocmask": 135,
        "rt_sigpending": 136,
        "rt_sigtimedwait": 137,
        "rt_sigreturn": 139,
        "uname": 160,
        "prctl": 167,
        "getpid": 172,
        "getppid": 173,
        "getuid": 174,
        "geteuid": 175,
        "getgid": 176,
        "getegid": 177,
        "gettid": 178,
        "brk": 214,
        "munmap": 215,
        "mremap": 216,
        "keyctl": 219,
        "clone": 220,
        "mmap": 222,
        "mprotect": 226,
        "madvise": 233,
        "perf_event_open": 241,
        "setns": 268,
        "process_vm_readv": 270,
        "process_vm_writev": 271,
        "finit_module": 273,
        "seccomp": 277,
        "getrandom": 278,
        "bpf": 280,
        "userfaultfd": 282,
        "kexec_file_load": 294,
    },
)
ARCHITECTURES = {"x86_64": X86_64, "aarch64": AARCH64}

# PyDLL holds the interpreter lock: a call that forks must not leave it to another thread.
_libc = ctypes.PyDLL(None, use_errno=True)
_syscall = _libc.syscall
_syscall.restype = ctypes.c_long
_syscall.argtypes = [ctypes.c_long] * (1 + _ARGUMENTS)
_quick_syscall = ctypes.PyDLL(None).syscall
_quick_syscall.restype = ctypes.c_long
_quick_syscall.argtypes = _syscall.argtypes


def here() -> Architecture | None:
    """Returns this processor's data; None when there is no table for it."""
    return ARCHITECTURES.get(platform.machine())


def make_call(name: str, *arguments: int) -> int:
    """Makes the call; every argument is a number or an address.

    Raises:
        OSError: the kernel refused it, or there is no table for this processor.
    """
    return prepare_call(name, *arguments)()


def prepare_call(name: str, *arguments: int) -> Callable[[], int]:
    """Returns a function that makes the call, with all preparation done here; for frequent calls.

    Raises:
        OSError: there is no table for this processor. The returned function raises it when the kernel refuses the call.
    """
    make = partial(_syscall, *_all_arguments(name, arguments))

    def call() -> int:
        value: int = make()
        if value < 0:
            number = ctypes.get_errno()
            raise OSError(number, f"{name}: {os.strerror(number)}")
        return value

    return call


def prepare_quick_call(name: str, *arguments: int) -> Callable[[], int]:
    """Works as `prepare_call`, but the function returns -1 when the kernel refuses, without a reason. It is the fastest
    form.

    Raises:
        OSError: there is no table for this processor.
    """
    return partial(_quick_syscall, *_all_arguments(name, arguments))


def _all_arguments(name: str, arguments: tuple[int, ...]) -> list[ctypes.c_long]:
    architecture = here()
    if architecture is None:
        raise OSError(errno.ENOSYS, f"{name}: no table of system calls for {platform.machine()}")
    padding = (0,) * (_ARGUMENTS - len(arguments))
    return [ctypes.c_long(value) for value in (architecture.numbers[name], *arguments, *padding)]


def fork() -> int:
    """Calls the C library's fork, without the hooks of `os.fork`.

    Raises:
        OSError: no more processes can be made.
    """
    process: int = _libc.fork()
    if process < 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
    return process

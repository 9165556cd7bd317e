"""The attempts of the self-test's children. An attempt that no layer stops does no harm."""

import ctypes
import errno
import mmap
import os
import resource
import socket
import struct
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from . import syscalls

Outcome = str
"""`done`, the name of an error number (`EPERM`), the name of another exception, or an observed value."""

MEMORY_BYTES = 128 << 20
"""More than a child of the self-test may have; the memory is never touched."""

_PR_GET_PDEATHSIG = 2
_PR_GET_DUMPABLE = 3
_PR_GET_NO_NEW_PRIVS = 39
_CAPABILITIES_VERSION = 0x20080522
_PTRACE_TRACEME = 0
_STDIN = 0
_STDOUT = 1
_NOWHERE = ("127.0.0.1", 9)
_FOLDER = Path("/toolwire-self-test")


def own_state() -> dict[str, Outcome]:
    """Returns the child's own state, as the kernel reports it."""
    death = ctypes.c_int()
    syscalls.make_call("prctl", _PR_GET_PDEATHSIG, ctypes.addressof(death))
    return {
        "capabilities": _capabilities(),
        "no_new_privs": str(syscalls.make_call("prctl", _PR_GET_NO_NEW_PRIVS)),
        "death with the zygote": str(death.value),
        "dumpable": str(syscalls.make_call("prctl", _PR_GET_DUMPABLE)),
        "environment": "not empty" if os.environ else "empty",
    }


def beyond_limits() -> dict[str, Outcome]:
    """Tries to exceed the kernel's limits."""
    soft, _ = resource.getrlimit(resource.RLIMIT_CPU)
    return {
        "memory beyond the limit": _outcome(_take_memory),
        "processor time": f"{soft} s",
        "open a file": _outcome(_open_folder),
        "fork": _outcome(_fork),
    }


def outside(abstract_socket: bytes) -> dict[str, Outcome]:
    """Tries the accesses that Landlock refuses; a process outside listens on `abstract_socket`."""
    return {
        "open a folder": _outcome(_open_folder),
        "connect by TCP": _outcome(_connect),
        "reach an abstract socket": _outcome(lambda: _reach(abstract_socket)),
    }


def surroundings() -> dict[str, Outcome]:
    """Tries the accesses that namespaces prevent."""
    return {
        "own process id": str(os.getpid()),
        "look at /usr": _outcome(Path("/usr").stat),
        "make a folder": _outcome(_make_folder),
        "reach the loopback": _outcome(_send_datagram),
        "host name": os.uname().nodename,
    }


def like_a_program() -> dict[str, Outcome]:
    """Tries a hostile program's usual first steps, and a few calls that must have other outcomes than EPERM."""
    return {name: _outcome(attempt) for name, attempt in FORBIDDEN.items()} | {
        "start a thread": _outcome(lambda: syscalls.make_call("clone3", 0, 0)),
        "ask for the parent": "done" if os.getppid() >= 0 else "refused",
        "memory beyond the limit": _outcome(_take_memory),
    }


def trace() -> None:
    """Makes the last attempt of a child: the filter kills the child for it."""
    syscalls.make_call("ptrace", _PTRACE_TRACEME)


def _outcome(attempt: Callable[[], object]) -> Outcome:
    try:
        attempt()
    except OSError as error:
        return errno.errorcode.get(error.errno or 0, str(error))
    except Exception as error:  # noqa: BLE001 - any exception is an observation
        return type(error).__name__
    return "done"


def _capabilities() -> str:
    header = ctypes.create_string_buffer(struct.pack("@Ii", _CAPABILITIES_VERSION, 0))
    data = ctypes.create_string_buffer(struct.calcsize("@6I"))
    syscalls.make_call("capget", ctypes.addressof(header), ctypes.addressof(data))
    return "some" if any(data.raw) else "none"


def _take_memory() -> None:
    bytearray(MEMORY_BYTES)


def _open_folder() -> None:
    os.close(os.open("/", os.O_RDONLY | os.O_DIRECTORY))


def _read_proc() -> None:
    os.close(os.open("/proc/self/status", os.O_RDONLY))


def _socket(family: int, kind: int) -> None:
    socket.socket(family, kind).close()


def _connect() -> None:
    with socket.socket() as own:
        own.connect(_NOWHERE)


def _reach(name: bytes) -> None:
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as own:
        own.connect(name)


def _send_datagram() -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as own:
        own.connect(_NOWHERE)


def _make_folder() -> None:
    _FOLDER.mkdir()
    _FOLDER.rmdir()


def _fork() -> None:
    process = os.fork()
    if process == 0:
        os._exit(0)
    # A traced process would be stopped for good by the signal of the fork's end; tracing is tried last.
    with suppress(OSError):
        os.waitpid(process, 0)


def _execute() -> None:
    # A folder cannot be executed: without a filter, this is EACCES.
    os.execv("/", ["/"])  # noqa: S606 - this starts neither a shell nor a program


def _map_executable() -> None:
    mmap.mmap(-1, mmap.PAGESIZE, prot=mmap.PROT_READ | mmap.PROT_EXEC).close()


FORBIDDEN: dict[str, Callable[[], object]] = {
    "open a file": _open_folder,
    "read /proc": _read_proc,
    "make an internet socket": lambda: _socket(socket.AF_INET, socket.SOCK_STREAM),
    "make a unix socket": lambda: _socket(socket.AF_UNIX, socket.SOCK_STREAM),
    "fork": _fork,
    "execute": _execute,
    "map executable memory": _map_executable,
    "signal the parent": lambda: os.kill(os.getppid(), 0),
    "read from another descriptor": lambda: os.read(_STDIN, 1),
    "write to another descriptor": lambda: os.write(_STDOUT, b"x"),
    "ask for the machine's name": os.uname,
}
"""Each attempt gives EPERM behind the filter, and none of them does without it."""

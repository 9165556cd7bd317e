"""The filter, run by an interpreter of our own over every number, and by the kernel."""

from __future__ import annotations

import json
import platform
import struct
import subprocess
import sys
import textwrap

import pytest

from tests.patience import PATIENCE_S
from tests.sandbox.programs import Runner
from toolwire.sandbox.child.kernel import seccomp, syscalls
from toolwire.sandbox.child.kernel.seccomp import Instruction

# By name: the number on x86-64, the number on aarch64. Written down here once more, from the kernel's own headers.
ALLOWED = {
    "munmap": (11, 215),
    "mremap": (25, 216),
    "brk": (12, 214),
    "futex": (202, 98),
    "rt_sigaction": (13, 134),
    "rt_sigprocmask": (14, 135),
    "rt_sigreturn": (15, 139),
    "rt_sigpending": (127, 136),
    "rt_sigsuspend": (130, 133),
    "rt_sigtimedwait": (128, 137),
    "sigaltstack": (131, 132),
    "exit": (60, 93),
    "exit_group": (231, 94),
    "clock_gettime": (228, 113),
    "clock_getres": (229, 114),
    "nanosleep": (35, 101),
    "clock_nanosleep": (230, 115),
    "getrandom": (318, 278),
    "sched_yield": (24, 124),
    "restart_syscall": (219, 128),
    "getpid": (39, 172),
    "getppid": (110, 173),
    "gettid": (186, 178),
    "getuid": (102, 174),
    "geteuid": (107, 175),
    "getgid": (104, 176),
    "getegid": (108, 177),
}
KILLED = {
    "ptrace": (101, 117),
    "bpf": (321, 280),
    "io_uring_setup": (425, 425),
    "io_uring_enter": (426, 426),
    "io_uring_register": (427, 427),
    "userfaultfd": (323, 282),
    "keyctl": (250, 219),
    "process_vm_readv": (310, 270),
    "process_vm_writev": (311, 271),
    "perf_event_open": (298, 241),
    "mount": (165, 40),
    "umount2": (166, 39),
    "pivot_root": (155, 41),
    "open_tree": (428, 428),
    "move_mount": (429, 429),
    "fsopen": (430, 430),
    "fsconfig": (431, 431),
    "fsmount": (432, 432),
    "fspick": (433, 433),
    "mount_setattr": (442, 442),
    "setns": (308, 268),
    "unshare": (272, 97),
    "kexec_load": (246, 104),
    "kexec_file_load": (320, 294),
    "init_module": (175, 105),
    "finit_module": (313, 273),
    "delete_module": (176, 106),
    "prctl": (157, 167),
    "seccomp": (317, 277),
}
READ, WRITE, MMAP, MPROTECT, CLONE3 = (0, 63), (1, 64), (9, 222), (10, 226), (435, 435)
MADVISE = (28, 233)
MACHINES = ("x86_64", "aarch64")
AUDIT = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}
NUMBERS = [*range(1024), 0x3FFFFFFF]
X32 = [0x40000000, 0x40000000 + 59, 0x40000000 + 520, 0x7FFFFFFF, 0xFFFFFFFF]
PROT_NONE, PROT_READ, PROT_WRITE, PROT_EXEC = 0, 1, 2, 4

ALLOW, EPERM, ENOSYS, KILL = 0x7FFF0000, 0x00050001, 0x00050026, 0x80000000


def verdict(program: list[Instruction], machine: int, number: int, arguments: tuple[int, ...] = ()) -> int:
    """The verdict of the classic BPF program on one call, as the kernel's own constant."""
    padded = (*arguments, *(0,) * (6 - len(arguments)))
    data = struct.pack("<iIQ6Q", _signed(number), machine, 0, *padded)
    accumulator = place = 0
    for _ in range(len(program)):
        step = program[place]
        place += 1
        match step.code:
            case 0x20:
                accumulator = int.from_bytes(data[step.operand : step.operand + 4], "little")
            case 0x15:
                place += step.if_true if accumulator == step.operand else step.if_false
            case 0x35:
                place += step.if_true if accumulator >= step.operand else step.if_false
            case 0x45:
                place += step.if_true if accumulator & step.operand else step.if_false
            case 0x06:
                return step.operand
            case _:
                raise AssertionError(f"no such instruction: {step}")
    raise AssertionError("the program has no end")


def _signed(number: int) -> int:
    return number - (1 << 32) if number >= 1 << 31 else number


def expected(column: int, number: int) -> int:
    """The table, for a call whose arguments are all zero: standard input, and memory that is not executable."""
    if number in {numbers[column] for numbers in ALLOWED.values()} | {MMAP[column], MPROTECT[column]}:
        return ALLOW
    if number in {numbers[column] for numbers in KILLED.values()}:
        return KILL
    return ENOSYS if number == CLONE3[column] else EPERM


@pytest.fixture(params=MACHINES)
def machine(request: pytest.FixtureRequest) -> str:
    return request.param


@pytest.fixture
def program(machine: str) -> list[Instruction]:
    return seccomp.instructions(syscalls.ARCHITECTURES[machine])


@pytest.mark.threat(48)
def test_every_number_is_answered_as_the_table_says(program: list[Instruction], machine: str) -> None:
    column = MACHINES.index(machine)
    wrong = {
        number: hex(verdict(program, AUDIT[machine], number))
        for number in NUMBERS
        if verdict(program, AUDIT[machine], number) != expected(column, number)
    }
    assert wrong == {}


@pytest.mark.threat(48)
def test_another_architecture_is_killed_whatever_it_asks(program: list[Instruction], machine: str) -> None:
    others = [audit for name, audit in AUDIT.items() if name != machine] + [0x40000003, 0, 0xFFFFFFFF]
    assert {verdict(program, other, number) for other in others for number in NUMBERS} == {KILL}


@pytest.mark.threat(48)
def test_x32_is_killed_and_numbers_beyond_the_table_are_refused() -> None:
    x86 = seccomp.instructions(syscalls.X86_64)
    assert {verdict(x86, AUDIT["x86_64"], number) for number in X32} == {KILL}
    arm = seccomp.instructions(syscalls.AARCH64)
    assert {verdict(arm, AUDIT["aarch64"], number) for number in X32} == {EPERM}


@pytest.mark.threat(48)
def test_reading_and_writing_are_for_the_channel_alone(program: list[Instruction], machine: str) -> None:
    column, audit = MACHINES.index(machine), AUDIT[machine]
    for number, descriptor in ((WRITE[column], 3), (READ[column], 4)):
        allowed = [fd for fd in [*range(64), 0xFFFFFFFF] if verdict(program, audit, number, (fd,)) == ALLOW]
        assert allowed == [descriptor]
        assert verdict(program, audit, number, (0,)) == EPERM


@pytest.mark.threat(48)
def test_memory_is_never_executable(program: list[Instruction], machine: str) -> None:
    column, audit = MACHINES.index(machine), AUDIT[machine]
    for number in (MMAP[column], MPROTECT[column]):
        for protection in range(16):
            answer = verdict(program, audit, number, (0, 4096, protection))
            assert answer == (EPERM if protection & PROT_EXEC else ALLOW)


@pytest.mark.threat(48)
def test_only_the_advice_of_allocators_about_memory_is_taken(program: list[Instruction], machine: str) -> None:
    column, audit = MACHINES.index(machine), AUDIT[machine]
    advice = [*range(128), 0x7FFFFFFF, 0xFFFFFFFF]
    # MADV_DONTNEED, MADV_FREE, MADV_HUGEPAGE
    taken = [one for one in advice if verdict(program, audit, MADVISE[column], (0, 4096, one)) == ALLOW]
    assert taken == [4, 8, 14]
    assert {verdict(program, audit, MADVISE[column], (0, 4096, one)) for one in advice} == {ALLOW, EPERM}


def test_every_jump_stays_inside(program: list[Instruction]) -> None:
    for place, step in enumerate(program):
        if step.code != 0x06:
            assert place + 1 + max(step.if_true, step.if_false) < len(program)
            assert max(step.if_true, step.if_false) < 256
    assert program[-1].code == 0x06


def test_the_tables_name_the_calls_that_the_filter_names() -> None:
    assert set(seccomp.ALLOWED) == set(ALLOWED)
    assert set(seccomp.KILLED) == set(KILLED)


def test_there_is_no_filter_for_a_processor_without_a_table(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(platform, "machine", lambda: "riscv64")
    assert seccomp.loader() is None


IN_THE_KERNEL = """
import ctypes, json, os, sys
from toolwire.sandbox.child.kernel import seccomp
from toolwire.sandbox.child.kernel import syscalls
load = seccomp.loader()
# Without it only root may load a filter; the sandbox's own children have it from the zygote.
syscalls.make_call("prctl", 38, 1)
libc = ctypes.CDLL(None, use_errno=True)
architecture = syscalls.here()
skipped = {architecture.numbers[name] for name in (*seccomp.ALLOWED, *seccomp.NOT_EXECUTABLE)}
found = {}
# Newer kernels let their own probes' calls past every filter, and answer them from their own trampolines only.
skipped |= {335, 336} if architecture.has_x32 else set()
for number in [*range(480), 0x40000000 + 59, 0x40000000 + 520]:
    if number in skipped:
        continue
    process = os.fork()
    if process == 0:
        load()
        # No valid argument: should a call come through, it comes to nothing.
        failed = libc.syscall(ctypes.c_long(number), *[ctypes.c_long(-1)] * 6) == -1
        os._exit(ctypes.get_errno() if failed else 0)
    found[number] = os.waitstatus_to_exitcode(os.waitpid(process, 0)[1])
print(json.dumps(found))
"""


@pytest.mark.threat(48)
def test_the_kernel_answers_every_number_in_the_same_way() -> None:
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(IN_THE_KERNEL)],
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=False,
    )
    assert done.stderr == ""
    machine = platform.machine()
    program = seccomp.instructions(syscalls.ARCHITECTURES[machine])
    codes = {ALLOW: 0, EPERM: 1, ENOSYS: 38, KILL: -31}
    minus_one = (0xFFFFFFFFFFFFFFFF,) * 6
    found = {int(number): code for number, code in json.loads(done.stdout).items()}
    assert len(found) > 400
    assert found == {number: codes[verdict(program, AUDIT[machine], number, minus_one)] for number in found}


REFUSED = {
    "open a file": "os.open('/etc/passwd', 0)",
    "look at a file": "os.stat('/')",
    "make a pipe": "os.pipe()",
    "read another descriptor": "os.read(0, 1)",
    "write another descriptor": "os.write(2, b'x')",
    "fork": "os.fork()",
    "execute": "os.execv('/bin/sh', ['sh'])",
    "signal itself": "os.kill(os.getpid(), 0)",
    "signal everybody": "os.kill(-1, 0)",
    "read what it writes": "os.read(3, 1)",
    "write what it reads": "os.write(4, b'x')",
    "close the channel": "os.close(3)",
    "copy the channel": "os.dup(3)",
    "ask for the machine's name": "os.uname()",
    "change its user": "os.setuid(0)",
}


@pytest.mark.threat(48)
@pytest.mark.parametrize("attempt", REFUSED.values(), ids=REFUSED.keys())
def test_a_program_is_refused_with_eperm(run: Runner, attempt: str) -> None:
    source = f"os = random._os\ntry:\n    {attempt}\nexcept OSError as error:\n    __result__ = error.errno"
    assert run(source, source_checks=False).value == 1


def test_a_call_that_cannot_fail_is_not_refused(run: Runner) -> None:
    source = "os = random._os\n[os.getppid() >= 0, os.getpid() > 0, os.getuid() >= 0, os.getgid() >= 0]"
    assert run(source, source_checks=False).value == [True] * 4

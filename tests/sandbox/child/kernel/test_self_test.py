"""The level is an observed one: layers that were built and never loaded are detected."""

from __future__ import annotations

import os

import pytest

from tests.sandbox.child.kernel.weakened import VOID, has_namespaces, weakened
from tests.sandbox.programs import Runner
from tests.sandbox.subprocesses import run_script
from toolwire.sandbox.child.kernel import landlock

BEST = "kernel+namespaces" if has_namespaces() else "kernel"
FALLEN = {
    "process": "none",
    "limits": "none",
    "landlock": "process" if landlock.abi() else BEST,
    "seccomp": "process",
    "namespaces": "kernel",
}


def test_what_the_self_test_forked_is_gone_before_it_asks_to_be_traced() -> None:
    """The end of a child stops a traced process, and the zygote would wait for it until the host gives up."""
    code, out, _ = run_script("""
        from toolwire.sandbox.child.kernel import attempts
        for _ in range(50):
            attempts.FORBIDDEN["fork"]()
            try:
                os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                continue
            sys.exit("still there")
        print("gone each time")
    """)
    assert (code, out) == (0, "gone each time\n")


def test_all_layers_together_are_the_best_level(run: Runner) -> None:
    isolation = run("1").isolation
    assert isolation.level == BEST
    abi = landlock.abi()
    held = {name: isolation.report[name] for name in ("process", "seccomp", "landlock")}
    assert held == {
        "process": "own process: empty environment, no capabilities, no new privileges",
        "seccomp": "files, sockets, processes, signals, executable memory refused, ptrace kills",
        "landlock": _landlock(abi),
    }


def _landlock(abi: int) -> str:
    if not abi:
        return "not there: this kernel has no Landlock, or it is switched off"
    refused = ["open a folder", *["connect by TCP"][: abi >= 4], *["reach an abstract socket"][: abi >= 6]]
    return f"ABI {abi}: {', '.join(refused)} refused"


@pytest.mark.threat(48)
@pytest.mark.parametrize("layer", VOID)
def test_a_layer_that_is_never_loaded_is_found_out(layer: str) -> None:
    with weakened(VOID[layer]) as sandbox:
        isolation = sandbox.zygotes.current().isolation
    assert isolation.level == FALLEN[layer]
    # The last child of all, the one that tries the filter, tries to take too much memory as well.
    beside = {"limits": {"limits", "seccomp"}}.get(layer, {layer})
    others = set(VOID) - beside - {"namespaces"}
    assert not any(isolation.report[name].startswith("NOT") for name in others)
    if FALLEN[layer] != BEST or layer == "namespaces":
        assert isolation.report[layer].startswith("NOT")


ANOTHER_PROCESSOR = """
def instructions(_):
    return [_load(4), Instruction(0x15, 0, 1, 1), _return(RETURN_EPERM), _return(RETURN_ALLOW)]
"""
FEWER_RIGHTS = """
_all = rights
def rights(version):
    every = _all(version)
    return Rights(files=1, network=every.network, scopes=every.scopes, size=every.size)
"""
# Linux takes this limit and does nothing with it.
NO_MEMORY_LIMIT = "_MEMORY = resource.RLIMIT_RSS"
SUBTLE = {
    "the filter allows everything": (
        "kernel/seccomp.py",
        "def instructions(_): return [_return(RETURN_ALLOW)]",
        "process",
    ),
    "the filter forgets to kill": ("kernel/seccomp.py", "KILLED = ()", "process"),
    "any descriptor may be read": ("kernel/seccomp.py", "ALLOWED += READING\nREADING = ()", "process"),
    "any descriptor may be written": ("kernel/seccomp.py", "ALLOWED += WRITING\nWRITING = ()", "process"),
    "memory may be executable": ("kernel/seccomp.py", "ALLOWED += NOT_EXECUTABLE\nNOT_EXECUTABLE = ()", "process"),
    "the filter is for another processor": ("kernel/seccomp.py", ANOTHER_PROCESSOR, "process"),
    "the kernel refuses the filter": ("kernel/seccomp.py", "def loader(): return lambda: -1", "process"),
    "the filter cannot be loaded": (
        "kernel/seccomp.py",
        "def _refused(): 1 / 0\ndef loader(): return _refused",
        "process",
    ),
    "files keep their rights": ("kernel/landlock.py", FEWER_RIGHTS, FALLEN["landlock"]),
    "memory is not limited": ("kernel/lockdown.py", NO_MEMORY_LIMIT, "none"),
    # Only a process with capabilities can keep them: one of root, or one in a user namespace.
    "capabilities are kept": (
        "kernel/lockdown.py",
        "def _capability_dropper(): return int",
        "none" if has_namespaces() or os.geteuid() == 0 else BEST,
    ),
    "the folder is never left": ("kernel/namespaces.py", "def _leave_files(): pass", "kernel"),
    "children share a PID namespace": ("kernel/namespaces.py", "def _can_fork_apart(): return False", "kernel"),
}


@pytest.mark.threat(48)
@pytest.mark.parametrize("name", SUBTLE)
def test_a_layer_with_a_hole_is_found_out(name: str) -> None:
    file, lines, level = SUBTLE[name]
    with weakened((file, lines)) as sandbox:
        isolation = sandbox.zygotes.current().isolation
    assert isolation.level == level


def test_a_set_up_that_fails_ends_the_child_and_is_told() -> None:
    broken = "def apply(outgoing, incoming, steps):\n    1 / 0"
    with weakened(("kernel/lockdown.py", broken)) as sandbox:
        isolation = sandbox.zygotes.current().isolation
    assert isolation.level == "none"
    assert isolation.report["process"] == "NOT there: no child can be set up with it"

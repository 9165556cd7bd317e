"""The isolation that this machine gives: enough for a program or not, and how to get the missing layers."""

from __future__ import annotations

import logging
from dataclasses import dataclass

from toolwire.sandbox.program import Program
from toolwire.sandbox.report import WASM_INSTEAD, Isolation, IsolationLevel
from toolwire.sandbox.zygote import Zygote
from toolwire.vocabulary.errors import SandboxUnavailable

ENOUGH: IsolationLevel = "kernel"
"""The least isolation that programs in processes get, unless code asks for less by name."""
_LOG = logging.getLogger("toolwire.sandbox")
_MISSING = "not "
"""How a layer's report begins when the layer does not hold, in letters of any case."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Layer:
    """One layer of the sandbox, as this machine has it.

    Attributes:
        name: Its key in the report.
        holds: True if a child that tested the layer was stopped by it.
        observed: The child's finding.
        how_to_fix: How to get the layer, in a sentence or two; empty when it holds.
    """

    name: str
    holds: bool
    observed: str
    how_to_fix: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RunnerState:
    """One runner of this machine.

    Attributes:
        name: What `runner=` takes.
        is_taken: True if programs run there when nobody chooses.
        level: The isolation level that it gives; `none` if it cannot run programs here.
        text: What it is, or why it cannot run programs and what to do.
    """

    name: str
    is_taken: bool
    level: IsolationLevel
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Diagnosis:
    """The sandbox's state on this machine, observed when `diagnose` ran.

    Attributes:
        level: The isolation level that programs get when nobody chooses a runner.
        is_enough: True if programs run here when nobody asks for another isolation.
        layers: The layers in the order in which a child sets them up; empty when no sandbox can be started.
        system: Other facts that the sandbox reports: Python, platform, warm-up.
        problem: Why no process can be started, and what to do; empty when one was started, or where none is needed.
        runners: The runners of this machine, with the one that is taken.
    """

    level: IsolationLevel
    is_enough: bool
    layers: tuple[Layer, ...]
    system: dict[str, str]
    problem: str = ""
    runners: tuple[RunnerState, ...] = ()


def layers_of(isolation: Isolation) -> tuple[Layer, ...]:
    """Returns the layers in the order in which a child sets them up."""
    return tuple(
        Layer(
            name=name,
            holds=not _is_missing(observed),
            observed=observed,
            how_to_fix=_HOW_TO_FIX[name] if _is_missing(observed) else "",
        )
        for name, observed in isolation.report.items()
        if name in _HOW_TO_FIX
    )


def require(program: Program, isolation: Isolation) -> None:
    """Checks that a program may run at this isolation. Below `kernel`, logs a warning for each run.

    Raises:
        SandboxUnavailable: the isolation is weaker than the program's `min_isolation`.
    """
    if not isolation.reaches(program.min_isolation):
        raise too_weak(isolation, program.min_isolation)
    if isolation.level == "process":
        _LOG.warning(
            "a program runs at isolation level 'process': in a process of its own with limits on memory, time and "
            "output, without the kernel's walls. Run only programs of models and users that you trust."
        )


def too_weak(isolation: Isolation, least: str) -> SandboxUnavailable:
    """Returns the error for weak isolation, with the missing layers and how to get them."""
    missing = [layer for layer in layers_of(isolation) if not layer.holds]
    observed = "; ".join(f"{layer.name}: {layer.observed}" for layer in missing)
    steps = " ".join(layer.how_to_fix for layer in missing)
    if isolation.level == "wasm":
        return SandboxUnavailable(
            f"a program needs isolation level {least!r}, and the runner 'wasm' gives 'wasm'",
            report=isolation.report,
            how_to_fix="On Linux runner='kernel' gives it, if `toolwire doctor` says so.",
        )
    return SandboxUnavailable(
        f"a program needs isolation level {least!r}, and this machine gives {isolation.level!r} ({observed})",
        report=isolation.report,
        how_to_fix=f"{steps} `toolwire doctor` shows each layer. {WASM_INSTEAD}"
        f"{_ANYWAY if isolation.level == 'process' else ''}",
    )


def diagnose_kernel() -> Diagnosis:
    """Starts a new sandbox, runs its self-test, and ends it. Takes about a quarter of a second."""
    try:
        zygote = Zygote()
    except SandboxUnavailable as unavailable:
        return Diagnosis(level="none", is_enough=False, layers=(), system=unavailable.report, problem=str(unavailable))
    zygote.close()
    return diagnosis_of(zygote.isolation)


def diagnosis_of(isolation: Isolation) -> Diagnosis:
    """Returns the diagnosis for a sandbox's own report."""
    layers = layers_of(isolation)
    names = {layer.name for layer in layers}
    return Diagnosis(
        level=isolation.level,
        is_enough=isolation.reaches(ENOUGH),
        layers=layers,
        system={name: text for name, text in isolation.report.items() if name not in names},
    )


def _is_missing(observed: str) -> bool:
    return observed.lower().startswith(_MISSING)


_ANYWAY = ' For programs that you trust as you trust your own code, ask for less by name: min_isolation="process".'
_HOW_TO_FIX = {
    "process": "Programs need Linux and a CPython of their own that may use prctl and capset.",
    "limits": "Let the host's process lower its limits (setrlimit, prlimit).",
    "landlock": "Use Linux 5.13 or newer with CONFIG_SECURITY_LANDLOCK and landlock among its `lsm=`, and let the "
    "container use landlock_create_ruleset and landlock_restrict_self.",
    "seccomp": "Use Linux on x86-64 or aarch64 with CONFIG_SECCOMP_FILTER, and let the container use "
    "prctl(PR_SET_SECCOMP).",
    "namespaces": "Allow user namespaces: sysctl user.max_user_namespaces above 0, "
    "kernel.unprivileged_userns_clone=1 and kernel.apparmor_restrict_unprivileged_userns=0 where they exist; in a "
    "container, a seccomp profile that allows unshare, mount and pivot_root.",
    "claimed": "If you trust the runner's machine as this one, write so beside it: RemoteRunner(..., trust='kernel'), "
    "or `toolwire worker --trust kernel`.",
}

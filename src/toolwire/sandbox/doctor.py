"""What this machine's sandbox is worth, layer by layer, and what to do about the layers it lacks."""

from __future__ import annotations

from dataclasses import dataclass

from toolwire.sandbox.isolation import ENOUGH, Layer, layers_of
from toolwire.sandbox.report import Isolation, IsolationLevel
from toolwire.sandbox.zygote import Zygote
from toolwire.vocabulary.errors import SandboxUnavailable


@dataclass(frozen=True, slots=True, kw_only=True)
class Diagnosis:
    """What was observed on this machine, just now."""

    level: IsolationLevel
    """The level that programs get."""
    is_enough: bool
    """Whether programs run without asking for less than `kernel` by name."""
    layers: tuple[Layer, ...]
    """In the order in which a child puts them on; empty when no sandbox can be started at all."""
    system: dict[str, str]
    """What else the sandbox says of itself: Python, platform, warm-up."""
    problem: str = ""
    """Why no sandbox can be started, and what to do; empty when one was."""


def diagnose() -> Diagnosis:
    """Starts a sandbox of its own, lets its self-test run, and ends it: a quarter of a second."""
    try:
        zygote = Zygote()
    except SandboxUnavailable as unavailable:
        return Diagnosis(level="none", is_enough=False, layers=(), system=unavailable.report, problem=str(unavailable))
    zygote.close()
    return diagnosis_of(zygote.isolation)


def diagnosis_of(isolation: Isolation) -> Diagnosis:
    """The diagnosis that a sandbox's own report amounts to."""
    layers = layers_of(isolation)
    names = {layer.name for layer in layers}
    return Diagnosis(
        level=isolation.level,
        is_enough=isolation.reaches(ENOUGH),
        layers=layers,
        system={name: text for name, text in isolation.report.items() if name not in names},
    )

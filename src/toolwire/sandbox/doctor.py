"""Diagnosis of this machine's sandbox, layer by layer, with the way to get each missing layer."""

from __future__ import annotations

from dataclasses import dataclass

from toolwire.sandbox.isolation import ENOUGH, Layer, layers_of
from toolwire.sandbox.report import Isolation, IsolationLevel
from toolwire.sandbox.zygote import Zygote
from toolwire.vocabulary.errors import SandboxUnavailable


@dataclass(frozen=True, slots=True, kw_only=True)
class Diagnosis:
    """The sandbox's state on this machine, observed when `diagnose` ran.

    Attributes:
        level: The isolation level that programs get.
        is_enough: True if programs run here with the default `min_isolation`, which is `kernel`.
        layers: The layers in the order in which a child sets them up; empty when no sandbox can be started.
        system: Other facts that the sandbox reports: Python, platform, warm-up.
        problem: Why no sandbox can be started, and what to do; empty when one was started.
    """

    level: IsolationLevel
    is_enough: bool
    layers: tuple[Layer, ...]
    system: dict[str, str]
    problem: str = ""


def diagnose() -> Diagnosis:
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

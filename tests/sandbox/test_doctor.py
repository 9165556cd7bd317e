"""The findings of the doctor, and the output of the command."""

from __future__ import annotations

import json
import sys
import sysconfig

import pytest

from tests.cli.command_line import Ended, run_here
from tests.elsewhere.answers import pretend_system
from tests.sandbox.child.kernel.weakened import has_namespaces
from toolwire import doctor
from toolwire.doctor import Diagnosis, RunnerState, diagnose
from toolwire.sandbox.isolation import Layer, diagnosis_of
from toolwire.sandbox.report import Isolation
from toolwire.sandbox.wasm import wasm_runner

HELD = Isolation(
    level="kernel+namespaces",
    report={"python": "3.11.7", "process": "own process", "limits": "limits", "landlock": "ABI 7", "seccomp": "held",
            "namespaces": "alone"},
)  # fmt: skip
WEAK = Isolation(
    level="process",
    report={"python": "3.11.7", "process": "own process", "limits": "limits", "landlock": "not there: no Landlock",
            "seccomp": "NOT in force: fork: done", "namespaces": "NOT there: unshare"},
)  # fmt: skip


def test_this_machine_is_diagnosed() -> None:
    found = diagnose()
    assert found.level == ("kernel+namespaces" if has_namespaces() else "kernel")
    assert (found.is_enough, found.problem) == (True, "")
    assert [layer.name for layer in found.layers] == ["process", "limits", "landlock", "seccomp", "namespaces"]
    assert list(found.system) == ["python", "platform", "warm_up"]


def test_layers_that_hold_need_nothing() -> None:
    found = diagnosis_of(HELD)
    assert found.layers[3] == Layer(name="seccomp", holds=True, observed="held", how_to_fix="")
    assert [layer.how_to_fix for layer in found.layers] == [""] * 5


def test_layers_that_do_not_hold_say_what_brings_them() -> None:
    found = diagnosis_of(WEAK)
    assert (found.level, found.is_enough) == ("process", False)
    assert [layer.name for layer in found.layers if not layer.holds] == ["landlock", "seccomp", "namespaces"]
    assert found.layers[3].how_to_fix == (
        "Use Linux on x86-64 or aarch64 with CONFIG_SECCOMP_FILTER, and let the container use prctl(PR_SET_SECCOMP)."
    )


def test_elsewhere_programs_take_web_assembly(monkeypatch: pytest.MonkeyPatch) -> None:
    pretend_system("darwin", monkeypatch)
    found = diagnose()
    monkeypatch.undo()
    kernel, wasm = found.runners
    assert found == Diagnosis(level="wasm", is_enough=True, layers=(), system={}, runners=(kernel, wasm))
    assert kernel == RunnerState(name="kernel", is_taken=False, level="none", text="needs Linux; this is darwin")
    assert (wasm.name, wasm.is_taken, wasm.level) == ("wasm", True, "wasm")


def test_elsewhere_without_the_extra_nothing_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    pretend_system("darwin", monkeypatch)
    monkeypatch.setattr(wasm_runner, "_loaded", [])
    monkeypatch.setitem(sys.modules, "wasmtime", None)
    found = diagnose()
    monkeypatch.undo()
    assert (found.level, found.is_enough) == ("none", False)
    assert found.runners[1].text.splitlines() == [
        "programs in WebAssembly need wasmtime",
        "pip install 'toolwire[wasm]'.",
    ]


def test_on_linux_the_kernels_runner_is_taken_whatever_else_is_there() -> None:
    kernel, wasm = diagnose().runners
    assert (kernel.is_taken, kernel.level.partition("+")[0], wasm.is_taken, wasm.level) == (
        True,
        "kernel",
        False,
        "wasm",
    )


def test_a_free_threaded_build_is_refused_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    real = sysconfig.get_config_var
    monkeypatch.setattr(sysconfig, "get_config_var", lambda name: 1 if name == "Py_GIL_DISABLED" else real(name))
    ended = run_here("doctor")
    assert ended.code == 1
    assert ended.stdout.splitlines()[-1] == (
        "This is a free-threaded build of Python, and toolwire has not been tested on one. Take the ordinary build of "
        "the same version, such as python3.14 in place of python3.14t."
    )


def test_the_command_prints_each_layer_and_is_content(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doctor, "diagnose", lambda: diagnosis_of(HELD))
    assert run_here("doctor") == Ended(
        code=0,
        stdout=(
            "isolation level  kernel+namespaces: programs run\n"
            "python           3.11.7\n"
            "process          own process\n"
            "limits           limits\n"
            "landlock         ABI 7\n"
            "seccomp          held\n"
            "namespaces       alone\n"
        ),
        stderr="",
    )


def test_the_command_says_how_to_get_what_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doctor, "diagnose", lambda: diagnosis_of(WEAK))
    ended = run_here("doctor")
    assert ended.code == 1
    lines = ended.stdout.splitlines()
    assert lines[0] == "isolation level  process: programs are refused unless code asks for less by name"
    assert lines[5].startswith("                 To get it: Use Linux 5.13 or newer with CONFIG_SECURITY_LANDLOCK")
    assert lines[6] == "seccomp          NOT in force: fork: done"
    assert lines[7] == f"                 To get it: {diagnosis_of(WEAK).layers[3].how_to_fix}"


def test_the_command_gives_json(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doctor, "diagnose", lambda: diagnosis_of(WEAK))
    ended = run_here("doctor", "--json")
    report = json.loads(ended.stdout)
    assert (ended.code, report["level"], report["is_enough"], report["system"]) == (
        1,
        "process",
        False,
        {"python": "3.11.7"},
    )
    assert report["layers"][0] == {"name": "process", "holds": True, "observed": "own process", "how_to_fix": ""}


def test_the_command_examines_this_machine() -> None:
    assert run_here("doctor").code == 0

"""Reports what holds a program on this machine, and which MCP servers answer, as the commands `doctor` do.

`log_in_mcp` is `toolwire mcp login`.
"""

import sys
import sysconfig
from dataclasses import replace

from toolwire.gateway.diagnosis import McpServerDiagnosis, diagnose_mcp, diagnose_profiles, log_in_mcp
from toolwire.sandbox.isolation import Diagnosis, RunnerState, diagnose_kernel
from toolwire.sandbox.wasm.wasm_runner import WasmRunner
from toolwire.vocabulary.errors import SandboxUnavailable
from toolwire.vocabulary.machine import system

__all__ = [
    "Diagnosis",
    "McpServerDiagnosis",
    "RunnerState",
    "diagnose",
    "diagnose_mcp",
    "diagnose_profiles",
    "log_in_mcp",
]

_UNTESTED = (
    "This is a free-threaded build of Python, and toolwire has not been tested on one. Take the ordinary build of the "
    "same version, such as python3.14 in place of python3.14t."
)


def diagnose() -> Diagnosis:
    """Tries each runner of this machine. Takes a second, and 4 to 9 more if the WebAssembly guest is not compiled yet.

    Returns:
        What was observed. On Linux programs run in the sandbox that the kernel holds, or nowhere, whatever else is
        there; elsewhere in WebAssembly. On a free-threaded build of Python nothing is tried.
    """
    if _is_free_threaded():
        return Diagnosis(level="none", is_enough=False, layers=(), system={"python": sys.version}, problem=_UNTESTED)
    wasm = _wasm_state(is_taken=not system.IS_LINUX)
    if not system.IS_LINUX:
        is_enough = wasm.level == "wasm"
        kernel = RunnerState(
            name="kernel", is_taken=False, level="none", text=f"needs Linux; this is {system.PLATFORM}"
        )
        return Diagnosis(level=wasm.level, is_enough=is_enough, layers=(), system={}, runners=(kernel, wasm))
    found = diagnose_kernel()
    text = "each program in a process of its own; taken on Linux, whatever else is there"
    kernel = RunnerState(name="kernel", is_taken=True, level=found.level, text=found.problem or text)
    return replace(found, runners=(kernel, wasm))


def _is_free_threaded() -> bool:
    return bool(sysconfig.get_config_var("Py_GIL_DISABLED"))


def _wasm_state(*, is_taken: bool) -> RunnerState:
    try:
        report = WasmRunner().isolation().report
    except SandboxUnavailable as unavailable:
        return RunnerState(name="wasm", is_taken=is_taken, level="none", text=str(unavailable))
    return RunnerState(name="wasm", is_taken=is_taken, level="wasm", text=report["wasm"])

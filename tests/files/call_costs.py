"""The cost of one call of a file tool, measured in a process of its own."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from tests.architecture.source import ROOT
from tests.processor import REFERENCE_MS, reference, thread_s

ROUNDS = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class CallCost:
    """The cost of a call, and its outcome."""

    seconds: float
    """Processor seconds of all threads, on the machine for which limits are chosen, or here if that is less.

    A tool ends hostile work by the clock, which a quicker machine does not shorten.
    """
    megabytes: float
    """By how much the call raised the peak of the process."""
    late_seconds: float
    """Processor seconds that the process used in the second after the call had ended."""
    kind: str
    """The kind of the failure; empty for a success."""
    text: str
    """The start of the error, or of the result."""
    text_size: int
    """Characters of the whole error or result."""


def call_cost(
    files: dict[str, str],
    folder: Path,
    tool: str,
    arguments: dict[str, Any],
    *,
    enough_s: float = 1.0,
    timeout_s: float | None = None,
) -> CallCost:
    """Returns the cost of a call in a folder with these files, by name.

    It is repeated while it takes more than `enough_s`: other work on the machine only ever adds to a cost.
    """
    workspace = folder / "workspace"
    workspace.mkdir(exist_ok=True)
    costs: list[CallCost] = []
    while not costs or (min(cost.seconds for cost in costs) > enough_s and len(costs) < ROUNDS):
        for name, text in files.items():
            (workspace / name).write_bytes(text.encode())
        request = {"folder": str(workspace), "tool": tool, "arguments": arguments, "timeout_s": timeout_s}
        (folder / "request.json").write_text(json.dumps(request))
        run = subprocess.run(
            [sys.executable, "-m", "tests.files.call_costs", str(folder / "request.json")],
            cwd=ROOT,
            capture_output=True,
            text=True,
            check=False,
        )
        assert run.returncode == 0, run.stderr
        costs.append(CallCost(**json.loads(run.stdout)))
    return min(costs, key=lambda cost: cost.seconds)


def main(request: dict[str, Any]) -> CallCost:
    from toolwire import ToolRegistry
    from toolwire.tools import insert_text_file, view_text_file, workspace_tools, write_text_file

    registry = ToolRegistry(rules=[{"effect": "auto", "tool": "*"}])
    for spec in (*workspace_tools(request["folder"]), view_text_file, write_text_file, insert_text_file):
        registry.register(spec, timeout_s=request["timeout_s"])
    # What is imported at the first call is not a cost of this one.
    registry.invoke("search_files", {"path": "/workspace/none/", "text": "x", "is_regex": True})
    registry.invoke("write_file", {"path": "/workspace/none", "content": "x", "base_sha256": "0"})
    standard = min(thread_s(reference) for _ in range(5))
    peak, spent = _peak_kilobytes(), time.process_time()
    done = registry.invoke(request["tool"], request["arguments"])
    spent = time.process_time() - spent
    grown = _peak_kilobytes() - peak
    standard = min(standard, *(thread_s(reference) for _ in range(5)))
    ended = time.process_time()
    if request["timeout_s"] is not None:
        time.sleep(1)
        ended = time.process_time()
        time.sleep(1)
    text = str(done.error or done.text)
    return CallCost(
        seconds=spent * min(1, REFERENCE_MS / 1_000 / standard),
        megabytes=grown / 1_024,
        late_seconds=time.process_time() - ended,
        kind="" if done.failure is None else done.failure.kind,
        text=text[:500],
        text_size=len(text),
    )


def _peak_kilobytes() -> int:
    # Not getrusage: its peak starts at that of the process that started this one.
    lines = Path("/proc/self/status").read_text().splitlines()
    return int(next(line for line in lines if line.startswith("VmHWM")).split()[1])


if __name__ == "__main__":
    print(json.dumps(asdict(main(json.loads(Path(sys.argv[1]).read_text())))))

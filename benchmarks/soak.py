"""Many programs, one after another: open files, the zygote's memory and the host's stay flat.

Run: python -m benchmarks.soak [executions]. The suite runs a short form of it.
"""

from __future__ import annotations

import gc
import logging
import os
import sys
import time
from dataclasses import dataclass
from pathlib import Path

from toolwire.sandbox.child.fork_server import SPARES
from toolwire.sandbox.host import Sandbox
from toolwire.sandbox.program import Answer, Program, ProgramCall, ProgramParameter, ProgramTool

EXECUTIONS = 10_000
WARM_UP = 200
HOST_GROWTH_MB = 8.0
"""Allocators keep some pages; a leak of a kilobyte a run would be 10 MB in 10,000."""
ZYGOTE_GROWTH_MB = 2.0
SETTLE_S = 20.0
"""Seconds for the process of the last program to end. It needs milliseconds on a machine at rest."""

ECHO = ProgramTool(
    name="echo",
    program_name="echo",
    parameters=(ProgramParameter(name="value", program_name="value", kind="either", required=True),),
)
PROGRAMS = (
    Program(source="print('x' * 1000)\n__result__ = echo([1, 2, 3])", tools=(ECHO,)),
    Program(source="1 / 0"),
    Program(source="import asyncio\n__result__ = await asyncio.gather(*(echo(n) for n in range(5)))", tools=(ECHO,)),
    Program(source="raise SystemExit(3)"),
    Program(source="__result__ = 'y' * 100_000"),
)


@dataclass(frozen=True, kw_only=True)
class Use:
    """The files, processes and memory of the host and its zygote."""

    files: int
    """Open descriptors of the host."""
    host_mb: float
    """Resident memory of the host."""
    zygote_mb: float
    """Resident memory of the zygote."""
    children: int
    """Processes of the zygote that are still there. It makes spares for later programs when it has nothing to do."""


def soak(executions: int) -> tuple[Use, Use, float]:
    """The resources held before and after a number of programs, and the programs run a second."""
    logging.getLogger("toolwire.sandbox").setLevel(logging.ERROR)
    with Sandbox() as sandbox:
        _run(sandbox, WARM_UP)
        before = _use(sandbox)
        started = time.perf_counter()
        _run(sandbox, executions)
        rate = executions / (time.perf_counter() - started)
        return before, _use(sandbox), rate


def _run(sandbox: Sandbox, executions: int) -> None:
    for number in range(executions):
        sandbox.run(PROGRAMS[number % len(PROGRAMS)], _echo)


def _echo(call: ProgramCall) -> Answer:
    return Answer(value=call.arguments["value"])


def _use(sandbox: Sandbox) -> Use:
    gc.collect()
    zygote = sandbox.zygotes.current().process_id
    return Use(
        files=sum(1 for _ in Path("/proc/self/fd").iterdir()),
        host_mb=_resident_mb("self"),
        zygote_mb=_resident_mb(str(zygote)),
        children=_children(zygote),
    )


def _children(process: int) -> int:
    """Processes of this one. A killed process stays until it and its parent have had the processor once more."""
    until = time.monotonic() + SETTLE_S
    while len(children := Path(f"/proc/{process}/task/{process}/children").read_text("ascii").split()) > SPARES:
        if time.monotonic() > until:
            break
        time.sleep(0.01)
    return len(children)


def _resident_mb(process: str) -> float:
    pages = int(Path(f"/proc/{process}/statm").read_text("ascii").split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 1_048_576


def main() -> int:
    """Prints both states; exits 1 when something grew."""
    before, after, rate = soak(int(sys.argv[1]) if len(sys.argv) > 1 else EXECUTIONS)
    print(f"before  {before}\nafter   {after}\n{rate:.0f} programs a second")
    return 0 if is_flat(before, after) else 1


def is_flat(before: Use, after: Use) -> bool:
    """Whether nothing grew beyond what allocators keep."""
    return (
        after.files <= before.files
        and after.children <= max(before.children, SPARES)
        and after.host_mb - before.host_mb <= HOST_GROWTH_MB
        and after.zygote_mb - before.zygote_mb <= ZYGOTE_GROWTH_MB
    )


if __name__ == "__main__":
    sys.exit(main())

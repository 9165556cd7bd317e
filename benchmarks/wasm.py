"""What a program costs in WebAssembly, in pairs with the kernel's sandbox: `python -m benchmarks.wasm`."""

from __future__ import annotations

import statistics
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from toolwire import Limits, ProgramResult, ToolRegistry

ROUNDS = 25
CASES = {
    "a small program": ("sum(range(10))", 2.0),
    "200 calls, one after the other": ("for n in range(200): echo(n)", 4.0),
    "a loop of a million": ("total = 0\nfor n in range(1_000_000): total += n", 4.5),
    "200 calls gathered": ("await asyncio.gather(*(echo(n) for n in range(200)))", 5.0),
}
"""Sources, each with the most that it may cost in times of the kernel's sandbox."""
HOSTILE = ("while True: pass", "while True: print('x' * 1000)", "while True: echo(1)")


def echo(value: int) -> int:
    """Gives the value back."""
    return value


def main() -> None:
    """Prints a row for each case: milliseconds of both in the median, and the median of the ratios of pairs."""
    made = {name: registry(name) for name in ("kernel", "wasm")}
    print(f"{'':34}{'kernel':>10}{'wasm':>10}{'ratio':>8}{'at most':>9}")
    for name, (source, bound) in CASES.items():
        pairs = [[taken_ms(made[runner], source) for runner in made] for _ in range(ROUNDS)]
        kernel, wasm = (statistics.median(pair[place] for pair in pairs) for place in range(2))
        ratio = statistics.median(pair[1] / pair[0] for pair in pairs)
        print(f"{name:34}{kernel:10.2f}{wasm:10.2f}{ratio:8.2f}{bound:9.1f}")
    print(f"memory of a program that waits: {waiting_mb(made['wasm']):.1f} MB (at most 6)")
    print(f"a small program beside a loop and two floods: {beside_ms(made['wasm']):.0f} ms (at most 100)")
    print(f"40 at once: {at_once(made['wasm'])} finished")


def registry(runner: str) -> ToolRegistry:
    """Returns a registry with one tool, whose runner has run a program."""
    made = ToolRegistry(runner="wasm" if runner == "wasm" else "kernel")
    made.register(echo)
    made.run_program("echo(1)")
    return made


def taken_ms(made: ToolRegistry, source: str) -> float:
    """Returns how long a program takes, from outside."""
    began = time.perf_counter()
    result = made.run_program(source)
    assert result.status == "finished", result
    return (time.perf_counter() - began) * 1000


def waiting_mb(made: ToolRegistry, count: int = 16) -> float:
    """Returns the proportional memory of each of several programs that wait for a tool."""
    release = threading.Event()
    waiting = threading.Semaphore(0)

    def wait() -> None:
        """Waits."""
        waiting.release()
        release.wait()

    made.register(wait)
    before = pss_mb()
    with ThreadPoolExecutor(count) as threads:
        running = [threads.submit(made.run_program, "wait()") for _ in range(count)]
        for _ in range(count):
            waiting.acquire()
        taken = pss_mb() - before
        release.set()
        assert all(each.result().status == "finished" for each in running)
    return taken / count


def pss_mb() -> float:
    """Returns the memory of this process, with its share of what others use too."""
    lines = Path("/proc/self/smaps_rollup").read_text().splitlines()
    return int(next(line for line in lines if line.startswith("Pss:")).split()[1]) / 1024


def beside_ms(made: ToolRegistry) -> float:
    """Returns the slowest of 20 small programs beside an endless loop, a flood of text and one of calls."""
    limits = Limits(wall_s=6, calls=10**6, output_flood_bytes=10**9)

    def run(source: str) -> ProgramResult:
        return made.run_program(source, limits=limits)

    with ThreadPoolExecutor(len(HOSTILE)) as threads:
        running = [threads.submit(run, source) for source in HOSTILE]
        time.sleep(0.5)
        slowest = max(taken_ms(made, "1 + 1") for _ in range(20))
        for each in running:
            each.result()
    return slowest


def at_once(made: ToolRegistry, count: int = 40) -> int:
    """Returns how many of 40 programs that start together finish."""
    with ThreadPoolExecutor(count) as threads:
        return sum(result.status == "finished" for result in threads.map(made.run_program, ["echo(1)"] * count))


if __name__ == "__main__":
    main()

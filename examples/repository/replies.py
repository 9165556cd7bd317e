"""Runs recorded replies of models by the command line, and prints each with its output.

python examples/repository/replies.py            all of them
python examples/repository/replies.py chinese    those named
"""

import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
TOOLS = "examples/repository/tools.py"


@dataclass(frozen=True, kw_only=True)
class Recorded:
    """A recorded reply."""

    name: str
    """Its file in `replies/`, without `.toml`."""
    shows: str
    """What there is to see, in one line."""
    exit_code: int = 0
    """How the command ends: 0 done, 1 failed, 4 the reply was refused, 5 the model declined."""
    is_frozen: bool = True
    """Whether what it prints is always the same; it then stands beside it in `.stdout`."""


RECORDED = (
    Recorded(
        name="loop_over_many_calls", shows="One program, ten tool calls: the model reads the totals, not the files."
    ),
    Recorded(name="parallel_calls", shows="Three calls at the same time, with asyncio.gather."),
    Recorded(name="modules_and_dates", shows="Modules that are always there; importing one of them does no harm."),
    Recorded(name="chinese", shows="Chinese in the reply, the program, and the files."),
    Recorded(name="caught_exception", shows="A tool's exception, caught in the program by its name."),
    Recorded(name="outside_the_repository", shows="The tools keep to the repository; the program is told so."),
    Recorded(name="damaged_and_repaired", shows="A fence, prose, curly quotes, a capital: repaired, and told."),
    Recorded(name="refused", shows="Two programs, and no telling which is meant: nothing runs.", exit_code=4),
    Recorded(name="model_declines", shows="The model says that it cannot do it: its message.", exit_code=5),
    Recorded(name="error_at_its_line", shows="A mistake in the program, at the model's own line.", exit_code=1),
    Recorded(name="wrong_tool_name", shows="A tool that does not exist, and the one that was meant.", exit_code=1),
    Recorded(name="wrong_arguments", shows="Arguments that do not fit: all of them told at once.", exit_code=1),
    Recorded(
        name="forbidden_import", shows="An import that would not work, refused before anything runs.", exit_code=1
    ),
    Recorded(name="whole_repository", shows="This very repository, hundreds of calls.", is_frozen=False),
    Recorded(name="history", shows="Its history; git runs in the tool, not in the program.", is_frozen=False),
)


def main(names: list[str]) -> None:
    """Runs the replies named, or all of them, and prints each with its output, in the order of `RECORDED`."""
    chosen = [recorded for recorded in RECORDED if not names or recorded.name in names]
    said: set[str] = set()
    print_introduction(said)
    # Two at a time: most of it is Python starting.
    with ThreadPoolExecutor(2) as pool:
        ended = pool.map(run, [["run", f"examples/repository/replies/{one.name}.toml"] for one in chosen])
        for recorded, done in zip(chosen, ended, strict=True):
            print_run(recorded.name.replace("_", " "), recorded.shows, done, said)
    print("\nThe replies are in examples/repository/replies/; the same from Python is examples/repository/session.py.")


def print_introduction(said: set[str]) -> None:
    """The tools, and one reply with its program."""
    print("A model is told of tools. It replies with a program that calls them; toolwire runs the program in")
    print("another process, checks and makes each call, and prints what the model reads next.")
    print_run("the tools", f"Plain Python functions, in {TOOLS}.", run(["tools"]), said)
    reply = "examples/repository/replies/loop_over_many_calls.toml"
    print(f"\n== a reply ==\nA model wrote {reply}:\n")
    print((ROOT / reply).read_text(encoding="utf-8").rstrip())


def run(arguments: list[str]) -> subprocess.CompletedProcess[str]:
    """One command line, from the repository's folder."""
    command = [sys.executable, "-m", "toolwire", *arguments, "--tools", TOOLS]
    environment = {**os.environ, "COLUMNS": "100"}
    return subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, encoding="utf-8", check=False)


def print_run(title: str, shows: str, done: subprocess.CompletedProcess[str], said: set[str]) -> None:
    """The command, what it printed, and how it ended; what stands on standard error is marked.

    A warning that is in `said` was printed before and is left out.
    """
    print(f"\n== {title} ==\n{shows}\n\n$ toolwire {' '.join(done.args[3:])}")
    for line in done.stderr.splitlines():
        if line not in said:
            print(f"[stderr] {line}")
        if line.startswith("WARNING: "):
            said.add(line)
    print(done.stdout.rstrip("\n"))
    if done.returncode:
        print(f"[exit code {done.returncode}]")


if __name__ == "__main__":
    main(sys.argv[1:])

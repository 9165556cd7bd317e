"""How many requests a local model solves in each calling format: `make model MODEL=path.gguf`. Hours on two cores."""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path

from benchmarks.model.conversation import FORMATS, TRIED, Format, Outcome, converse
from benchmarks.model.engines import Engine, EngineMissing, load_engine
from benchmarks.model.tasks import OWN_TASKS, Task, read_tasks, spread

COLUMNS = ("tasks", "readable", "right at first", "within 3", "next tries", "repeated", "ended", "as fail", "in", "out")

FORMATS_HELP = (
    f"{','.join(form.name for form in FORMATS)}, or one that is tried: {', '.join(form.name for form in TRIED)}"
)


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the tasks, prints a line for each conversation to stderr and the table to stdout."""
    options = _options().parse_args(arguments)
    try:
        tasks = spread(read_tasks(options.from_file), options.tasks)
        engine = load_engine(options.model, threads=options.threads)
    except (EngineMissing, OSError, ValueError) as error:
        print(error, file=sys.stderr)
        return 2
    outcomes = asyncio.run(_run(tasks, options.formats, engine, options.save))
    print(table(outcomes, options.formats))
    return 0


def table(outcomes: Sequence[Outcome], formats: Iterable[Format]) -> str:
    """Returns one row for each format. `in` and `out` are the mean tokens of the first replies."""
    rows = [f"{'':<14}" + "".join(f"{column:>16}" for column in COLUMNS)]
    for form in formats:
        found = [outcome for outcome in outcomes if outcome.format == form.name]
        if found:
            rows.append(f"{form.name:<14}" + "".join(f"{cell:>16}" for cell in _cells(found)))
    return "\n".join(rows)


def _cells(found: Sequence[Outcome]) -> list[str]:
    tries = [is_right for outcome in found for is_right in outcome.next_tries]
    solved = [outcome for outcome in found if outcome.solved_at is not None]
    firsts = [outcome.first for outcome in found if outcome.first is not None]
    return [
        str(len(found)),
        str(sum(outcome.is_readable for outcome in found)),
        str(sum(outcome.solved_at == 1 for outcome in found)),
        str(len(solved)),
        f"{sum(tries)} of {len(tries)}",
        str(sum(outcome.repeated for outcome in found)),
        f"{sum(outcome.ending == 'text' for outcome in solved)} of {len(solved)}",
        str(sum(outcome.ending == "fail" for outcome in solved)),
        f"{sum(first.tokens_in for first in firsts) / len(firsts):.0f}",
        f"{sum(first.tokens_out for first in firsts) / len(firsts):.0f}",
    ]


async def _run(tasks: Sequence[Task], formats: Sequence[Format], engine: Engine, save: Path | None) -> list[Outcome]:
    """Runs a group's tasks of one protocol side by side: they share the prompt, which the engine keeps."""
    outcomes: list[Outcome] = []
    for group in dict.fromkeys(task.group.name for task in tasks):
        for form in formats:
            for task in tasks:
                if task.group.name != group:
                    continue
                outcome = await converse(task, form, engine)
                outcomes.append(outcome)
                _tell(outcome, save)
    return outcomes


def _tell(outcome: Outcome, save: Path | None) -> None:
    """Writes each conversation as it ends, so that a stopped run is not lost."""
    print(f"{outcome.format} {outcome.task}: solved at {outcome.solved_at}, ended by {outcome.ending}", file=sys.stderr)
    if save is not None:
        with save.open("a", encoding="utf-8") as file:
            file.write(json.dumps(outcome.saved(), ensure_ascii=False) + "\n")


def _options() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.model", description=__doc__)
    parser.add_argument("model", type=Path, help="path of a GGUF file")
    parser.add_argument("--tasks", type=int, default=sys.maxsize, help="number of tasks, taken at even distances (all)")
    parser.add_argument("--formats", type=_formats, default=FORMATS, help=FORMATS_HELP)
    parser.add_argument("--from-file", type=Path, default=OWN_TASKS, help="other tasks: see benchmarks/model/tasks.py")
    parser.add_argument("--save", type=Path, help="append each conversation to this file, as a line of JSON")
    parser.add_argument("--threads", type=int, default=os.cpu_count() or 1, help="threads of the engine (every core)")
    return parser


def _formats(names: str) -> list[Format]:
    known = {form.name: form for form in (*FORMATS, *TRIED)}
    unknown = [name for name in names.split(",") if name not in known]
    if unknown:
        raise argparse.ArgumentTypeError(f"unknown {', '.join(unknown)}: there are {', '.join(known)}")
    return [known[name] for name in names.split(",")]


if __name__ == "__main__":
    sys.exit(main())

"""`toolwire doctor`: prints how well programs are isolated on this machine, and how to install missing layers."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

import typer

from toolwire.cli.exit_codes import ExitCode, exit_codes
from toolwire.cli.options import JsonOption
from toolwire.cli.output import Output

if TYPE_CHECKING:
    from toolwire.doctor import Diagnosis

EPILOG = f"""\b
Examples:
  toolwire doctor
  toolwire doctor --json

It exits with 0 when programs run here without asking for less isolation.

{exit_codes("too little isolation for programs")}"""


app = typer.Typer(rich_markup_mode=None, add_completion=False)


@app.command("doctor", epilog=EPILOG)
def doctor(context: typer.Context, json: JsonOption = False) -> None:
    """Print how well this machine holds programs.

    It tries each runner and each layer, and reports what it observed. The first
    time it compiles the WebAssembly guest, which takes some seconds.
    """
    from toolwire.doctor import diagnose

    output: Output = context.obj
    output.keep_stdout()
    diagnosis = diagnose()
    if json:
        output.result_json(dataclasses.asdict(diagnosis))
    else:
        output.result(_diagnosis_text(diagnosis))
    raise typer.Exit(ExitCode.DONE if diagnosis.is_enough else ExitCode.FAILED)


def _diagnosis_text(diagnosis: Diagnosis) -> str:
    verdict = "programs run" if diagnosis.is_enough else "programs are refused unless code asks for less by name"
    lines = [f"isolation level  {diagnosis.level}: {verdict}"]
    lines += [f"{name:<16} {text}" for name, text in diagnosis.system.items()]
    for layer in diagnosis.layers:
        lines.append(f"{layer.name:<16} {layer.observed}")
        if layer.how_to_fix:
            lines.append(f"{'':<16} To get it: {layer.how_to_fix}")
    if diagnosis.problem:
        lines.append(diagnosis.problem)
    for runner in diagnosis.runners:
        mark = ", which programs take" if runner.is_taken else ""
        lines.append(f"runner {runner.name!r:<9} {runner.level}{mark}: {runner.text}")
    return "\n".join(lines)

"""The entry point. It assembles the commands and converts every way to end into an exit code."""

from __future__ import annotations

import logging
import sys
from collections.abc import Sequence
from importlib.metadata import version
from typing import Annotated, NoReturn

import typer

from toolwire.cli import (
    approvals_command,
    call_command,
    doctor_command,
    log_command,
    policy_command,
    prompt_command,
    run_command,
    tools_command,
)
from toolwire.cli.exit_codes import EXIT_CODES, ExitCode, Stop
from toolwire.cli.output import Output, hide_tool_errors, open_missing_streams, write_any_text
from toolwire.cli.waiting import leave

EPILOG = f"""\b
Examples:
  toolwire tools --tools tools.py
  toolwire prompt --tools tools.py > prompt.md
  toolwire run reply.toml --tools tools.py
  toolwire call search query=budget limit=3 --tools tools.py
  toolwire policy explain search query=budget --tools tools.py
  toolwire approvals list
  toolwire log --since 2h
  toolwire doctor

\b
Results go to standard output, everything else to standard error, also what
the tools themselves print.

{EXIT_CODES}"""

app = typer.Typer(
    name="toolwire",
    add_completion=False,
    no_args_is_help=True,
    # Help texts are also read in pipes and logs, so they are plain lines without boxes.
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def main() -> NoReturn:
    """Runs the command line of this process, and ends the process."""
    open_missing_streams()
    write_any_text()
    output = Output()
    _show_warnings(output)
    leave(execute(sys.argv[1:], output))


def execute(arguments: Sequence[str], output: Output) -> int:
    """Runs one command line and returns its exit code."""
    try:
        app(args=list(arguments), obj=output, prog_name="toolwire")
    except Stop as stop:
        output.say(f"toolwire: {stop.message}")
        if stop.hint:
            output.say(stop.hint)
        return stop.code
    except KeyboardInterrupt:
        return ExitCode.INTERRUPTED
    except SystemExit as end:
        return end.code if isinstance(end.code, int) else ExitCode.DONE
    return ExitCode.DONE


class _Said(logging.Handler):
    """A log handler that writes through `Output`, which escapes control characters on a terminal."""

    def __init__(self, output: Output, form: str) -> None:
        super().__init__()
        self._output = output
        self.setFormatter(logging.Formatter(form))

    def emit(self, record: logging.LogRecord) -> None:
        """Writes the record to standard error."""
        self._output.say(self.format(record).rstrip("\n"))


def _show_warnings(output: Output) -> None:
    """Sends toolwire's log and Python's warnings to standard error, because neither is a result."""
    logging.captureWarnings(True)
    hide_tool_errors()
    # The text of a warning already names its place.
    for name, form in (("toolwire", "%(levelname)s: %(message)s"), ("py.warnings", "%(message)s")):
        logger = logging.getLogger(name)
        logger.addHandler(_Said(output, form))
        logger.propagate = False


def _print_version(is_asked: bool) -> None:
    if is_asked:
        typer.echo(f"toolwire {version('toolwire')}")
        raise typer.Exit


@app.callback(epilog=EPILOG)
def _toolwire(  # pyright: ignore[reportUnusedFunction] - typer keeps it
    show_version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """Run the tool calls of language models, alone or from programs that a model wrote."""


app.command("run", epilog=run_command.EPILOG)(run_command.run)
app.command("prompt", epilog=prompt_command.EPILOG)(prompt_command.prompt)
app.command("tools", epilog=tools_command.EPILOG)(tools_command.tools)
app.command("call", epilog=call_command.EPILOG)(call_command.call)
app.add_typer(policy_command.policy, name="policy")
app.add_typer(approvals_command.approvals, name="approvals")
app.add_typer(log_command.log, name="log")
app.command("doctor", epilog=doctor_command.EPILOG)(doctor_command.doctor)

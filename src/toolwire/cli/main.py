"""The entry point. It assembles the commands and converts every way to end into an exit code."""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Sequence
from importlib import import_module
from typing import Annotated, Any, Literal, NoReturn

import typer
from typer.completion import completion_init, get_completion_script  # pyright: ignore[reportPrivateImportUsage]
from typer.core import TyperCommand, TyperGroup

import toolwire
from toolwire.cli.exit_codes import ExitCode, Stop, exit_codes
from toolwire.cli.output import Output, open_missing_streams, write_any_text
from toolwire.cli.waiting import leave

EPILOG = f"""\b
Start here:
  toolwire init my_agent           write files that run
  toolwire tools --tools tools.py  see what a model gets
  toolwire COMMAND --help          read more of a command

\b
Examples:
  toolwire tools --tools tools.py
  toolwire prompt --tools tools.py > prompt.md
  toolwire run reply.toml --tools tools.py
  toolwire chat --model openai:gpt-x-mini --tools tools.py
  toolwire call search query=budget --tools tools.py
  toolwire serve --tools tools.py --http 8000
  toolwire policy explain pay amount=5 --tools tools.py
  toolwire approvals list
  toolwire log --since 2h
  toolwire doctor

Results go to standard output, everything else to standard error, also what
the tools themselves print.

{exit_codes("the job failed", *ExitCode)}"""

COMPLETION_EPILOG = f"""\b
Examples:
  eval "$(toolwire completion bash)"      in ~/.bashrc
  eval "$(toolwire completion zsh)"       in ~/.zshrc
  toolwire completion fish | source       in config.fish

{exit_codes()}"""

_COMMANDS = {
    "init": "init_command",
    "run": "run_command",
    "chat": "chat_command",
    "prompt": "prompt_command",
    "tools": "tools_command",
    "call": "call_command",
    "serve": "serve_command",
    "policy": "policy_command",
    "approvals": "approvals_command",
    "log": "log_command",
    "worker": "worker_command",
    "runner": "runner_command",
    "runs": "runs_command",
    "artifacts": "artifacts_command",
    "store": "store_command",
    "mcp": "mcp_command",
    "doctor": "doctor_command",
}
"""The module of each command, in the order of the help page."""

COMPLETE_VARIABLE = "_TOOLWIRE_COMPLETE"
"""The environment variable by which a shell asks for the words that complete a line."""

HELP_WIDTH = 120
"""Maximum width of a help page in columns. Longer lines are hard to read."""


class _LazyGroup(TyperGroup):
    """Imports the module of a command when the command is used."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        # Placeholders: the group lists the names, and suggests one for a wrong name.
        self.commands = {**{name: TyperCommand(name) for name in _COMMANDS}, **self.commands}

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """Returns the command of that name, or None."""
        module = _COMMANDS.get(cmd_name)
        if module is None:
            return super().get_command(ctx, cmd_name)
        return typer.main.get_command(import_module(f"toolwire.cli.commands.{module}").app)


app = typer.Typer(
    name="toolwire",
    cls=_LazyGroup,
    add_completion=False,
    no_args_is_help=True,
    # Help texts are also read in pipes and logs, so they are plain lines without boxes.
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": HELP_WIDTH},
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
    if COMPLETE_VARIABLE in os.environ:
        completion_init()
    try:
        app(args=list(arguments), obj=output, prog_name="toolwire")
    except Stop as stop:
        output.say(f"toolwire: {stop.message}")
        if stop.hint:
            output.say(stop.hint)
        return stop.code
    except KeyboardInterrupt:
        code = ExitCode.INTERRUPTED
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else ExitCode.DONE
    else:
        code = ExitCode.DONE
    if code == ExitCode.INTERRUPTED:
        output.say("toolwire: interrupted")
    return code


class _OutputHandler(logging.Handler):
    """A log handler that writes through `Output`, which escapes control characters on a terminal."""

    def __init__(self, output: Output, form: str) -> None:
        super().__init__()
        self._output = output
        self.setFormatter(logging.Formatter(form))

    def emit(self, record: logging.LogRecord) -> None:
        """Writes the record to standard error. One of an MCP server's own log or thread names the server."""
        text = self.format(record).rstrip("\n")
        source = record.name if record.name.startswith(_SERVER_LOG) else record.threadName or ""
        server = source.partition(_SERVER_LOG)[2]
        self._output.say(f"{server}: {text}" if server and repr(server) not in text else text)


_SERVER_LOG = "toolwire.mcp."
"""How the names of the log and of the thread of an MCP server begin."""

_ONCE_LIMIT = 1_000
"""Maximum number of lines that are written once. A server may choose their texts."""


class _Once(logging.Filter):
    """Lets each line of a server pass once: the SDK logs one at each attempt to connect, and these never end."""

    def __init__(self) -> None:
        super().__init__()
        self._seen: set[tuple[str | None, str]] = set()

    def filter(self, record: logging.LogRecord) -> bool:
        """Returns True for the first record with this text."""
        line = (record.threadName, record.getMessage())
        if line in self._seen:
            return False
        if len(self._seen) < _ONCE_LIMIT:
            self._seen.add(line)
        return True


def _show_warnings(output: Output) -> None:
    """Sends toolwire's log, that of MCP's SDK and Python's warnings to standard error, because none is a result."""
    logging.captureWarnings(True)
    # A result already reports the exception of its tool. `call --traceback` shows it.
    logging.getLogger("toolwire.tools").setLevel(logging.ERROR)
    # The text of a warning already names its place.
    with_level = "%(levelname)s: %(message)s"
    for name, form in (("toolwire", with_level), ("mcp", with_level), ("py.warnings", "%(message)s")):
        logger, handler = logging.getLogger(name), _OutputHandler(output, form)
        if name == "mcp":
            handler.addFilter(_Once())
        logger.addHandler(handler)
        logger.propagate = False


def _print_version(is_asked: bool) -> None:
    if is_asked:
        typer.echo(f"toolwire {toolwire.__version__}")
        raise typer.Exit


@app.callback(epilog=EPILOG)
def _toolwire(  # pyright: ignore[reportUnusedFunction] - typer keeps it
    show_version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """Run the tool calls of language models, alone or from programs that a model wrote."""


@app.command("completion", epilog=COMPLETION_EPILOG)
def completion(
    context: typer.Context,
    shell: Annotated[Literal["bash", "zsh", "fish"], typer.Argument(metavar="SHELL", help="bash, zsh or fish.")],
) -> None:
    """Print the script that completes commands in a shell."""
    output: Output = context.obj
    output.result(get_completion_script(prog_name="toolwire", complete_var=COMPLETE_VARIABLE, shell=shell))

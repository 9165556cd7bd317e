"""`toolwire prompt`: prints the system prompt that describes the tools to a model."""

from __future__ import annotations

from typing import Annotated, Literal

import typer

import toolwire
from toolwire.cli.commands.policy_command import honour
from toolwire.cli.completing import complete_protocol
from toolwire.cli.exit_codes import ExitCode, exit_codes, wrong_usage
from toolwire.cli.loading import registry_of
from toolwire.cli.options import LanguageOption, PolicyOption, ToolsOption
from toolwire.cli.output import Output

EPILOG = f"""\b
Examples:
  toolwire prompt --tools tools.py
  toolwire prompt --tools tools.py --thought full
  toolwire prompt --tools tools.py --protocol openai

{exit_codes("the result cannot be written", ExitCode.UNUSABLE_TOOLS)}"""


app = typer.Typer(rich_markup_mode=None, add_completion=False)


@app.command("prompt", epilog=EPILOG)
def prompt(
    context: typer.Context,
    tools: ToolsOption,
    policy: PolicyOption = None,
    protocol: Annotated[
        str, typer.Option(metavar="NAME", help="The format the model is to reply in.", autocompletion=complete_protocol)
    ] = "attp",
    language: LanguageOption = None,
    thought: Annotated[
        Literal["short", "full"] | None,
        typer.Option(help="How much the model is to think aloud: one line, the default, or four points."),
    ] = None,
) -> None:
    """Print the description of the tools for a model.

    It is the system prompt, or the tools of a request as JSON.
    """
    output: Output = context.obj
    output.keep_stdout()
    registry = registry_of(tools)
    honour(policy, registry, output)
    with wrong_usage(toolwire.ToolwireError):
        described = toolwire.Session(registry, protocol=protocol, language=language, thought=thought).instructions
    if isinstance(described, str):
        output.result(described)
    else:
        output.result_json(described)

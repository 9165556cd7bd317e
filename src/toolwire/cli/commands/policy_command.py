"""`toolwire policy`: checks the rules for a set of tools, and explains their effect on one call."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.table import Table

import toolwire
from toolwire.cli.completing import complete_tool
from toolwire.cli.display import add_row, count_of, table_text
from toolwire.cli.exit_codes import ExitCode, Stop, exit_codes, wrong_usage
from toolwire.cli.loading import registry_of
from toolwire.cli.options import JsonOption, PolicyOption, ToolsOption
from toolwire.cli.output import Output
from toolwire.cli.result_output import json_or_repr
from toolwire.cli.typed_arguments import read_pairs

POLICY_FILE = "toolwire.toml"
"""The policy file that is used from the current folder if none is named."""

app = typer.Typer(no_args_is_help=True, add_completion=False, rich_markup_mode=None)

CHECK_EPILOG = f"""\b
Examples:
  toolwire policy check --tools tools.py
  toolwire policy check rules.toml --tools tools.py

It exits with 0 when each rule can do what it says, and with 1 when one cannot.

{exit_codes("a rule cannot do what it says", ExitCode.UNUSABLE_TOOLS)}"""

EXPLAIN_EPILOG = f"""\b
Examples:
  toolwire policy explain pay amount=5 --tools tools.py
  toolwire policy explain now --tools t.py --policy a.toml

It runs nothing, and exits with 0 whatever the verdict is.

{exit_codes("the result cannot be written", ExitCode.UNUSABLE_TOOLS)}"""


@app.callback()
def _policy() -> None:  # pyright: ignore[reportUnusedFunction] - typer keeps it
    """Check permission rules, and explain their effect."""


@app.command("check", epilog=CHECK_EPILOG)
def check_policy(
    context: typer.Context,
    tools: ToolsOption,
    file: Annotated[
        str | None, typer.Argument(metavar="[FILE]", help=f"The policy file, {POLICY_FILE} if none.")
    ] = None,
    json: JsonOption = False,
) -> None:
    """Check that each rule can do what it says, its examples too."""
    output: Output = context.obj
    output.keep_stdout()
    registry = registry_of(tools)
    named = file or POLICY_FILE
    wrong = _find_problems(named, registry)
    if json:
        output.result_json([{"place": place, "message": message} for place, message in wrong])
    elif wrong:
        output.result("\n".join(f"{place}: {message}" if place else message for place, message in wrong))
    else:
        found = toolwire.load_policy(named)
        output.result(f"{named}: {_success_text(found, registry)}")
    raise typer.Exit(ExitCode.FAILED if wrong else ExitCode.DONE)


@app.command("explain", epilog=EXPLAIN_EPILOG)
def explain(
    context: typer.Context,
    name: Annotated[str, typer.Argument(metavar="NAME", help="The tool.", autocompletion=complete_tool)],
    tools: ToolsOption,
    pairs: Annotated[list[str] | None, typer.Argument(metavar="KEY=VALUE", help="Arguments by name.")] = None,
    policy: PolicyOption = None,
    json: JsonOption = False,
) -> None:
    """Say what would happen to a call, and by which rules."""
    output: Output = context.obj
    output.keep_stdout()
    registry = registry_of(tools)
    honour(policy, registry, output)
    spec = registry.to_toolspecs().get(name)
    given = read_pairs(pairs or (), {} if spec is None else spec.input_schema)
    with wrong_usage(toolwire.ToolwireError):
        found = registry.explain_call(name, given)
    if json:
        output.result_json(_as_json(found))
    else:
        output.result(_explanation_text(found, is_terminal=output.is_terminal))


def honour(named: str | None, registry: toolwire.ToolRegistry, output: Output) -> None:
    """Applies the named policy file, or the one in the current folder, and reports its name.

    Does nothing if none is named and the folder has none.

    Raises:
        Stop: The file cannot be read, or contains a mistake.
    """
    if named is None and not Path(POLICY_FILE).exists():
        return
    with _unusable_policy():
        registry.configure(rules=Path(named or POLICY_FILE))
    output.say(f"policy: {named or POLICY_FILE}")


def check_readable(named: str | None) -> None:
    """Ends the command if `honour` could not read the policy file, before there are tools to check its rules with.

    Raises:
        Stop: The file cannot be read, or contains a mistake that no tools are needed to see.
    """
    if named is not None or Path(POLICY_FILE).exists():
        with _unusable_policy():
            toolwire.load_policy(named or POLICY_FILE)


@contextmanager
def _unusable_policy() -> Generator[None]:
    try:
        yield
    except toolwire.ToolwireError as error:
        raise Stop(ExitCode.WRONG_USAGE, f"the policy cannot be used:\n{error}") from error


def _find_problems(named: str, registry: toolwire.ToolRegistry) -> list[tuple[str, str]]:
    """Returns the problems, each with its place."""
    if not Path(named).exists():
        raise Stop(ExitCode.WRONG_USAGE, f"there is no policy file {named}")
    try:
        found = toolwire.load_policy(named)
    except toolwire.ToolwireError as error:
        return [("", line) for line in str(error).split("\n")]
    return [(problem.place, problem.message) for problem in found.check(registry.to_toolspecs())]


def _success_text(found: toolwire.Policy, registry: toolwire.ToolRegistry) -> str:
    examples = sum(len(rule.calls) for rule in found.rules)
    checked = f", {count_of(examples, 'example as it says', 'examples as they say')}" if examples else ""
    tools = count_of(len(registry.list_toolspecs()), "tool")
    return f"{count_of(len(found.rules), 'rule')}, nothing wrong for {tools}{checked}"


def _explanation_text(found: Any, *, is_terminal: bool) -> str:
    table = Table()
    for title in ("", "EFFECT", "RULE", "WHY", "FROM"):
        table.add_column(title, overflow="fold")
    for each in found.rules:
        add_row(table, "hits" if each.hits else "-", each.rule.effect, str(each.rule), each.why, each.rule.source)
    if not found.rules:
        add_row(table, "-", "", "no rule is about this tool", "", "")
    lines = [table_text(table, is_terminal=is_terminal), ""]
    lines.append(f"default  {found.default}, where no rule hits" + (": no rule lifts it" * (found.default == "deny")))
    if found.guard:
        lines.append(f"guard    confirm: {found.guard}")
    lines.append(f"verdict  {found.verdict.effect}: {'; '.join(found.verdict.reasons)}")
    return "\n".join(lines)


def _as_json(found: Any) -> dict[str, Any]:
    return {
        "tool": found.tool,
        "arguments": json_or_repr(dict(found.arguments)),
        "default": found.default,
        "rules": [
            {
                "rule": str(each.rule),
                "id": each.rule.id,
                "effect": each.rule.effect,
                "source": each.rule.source,
                "note": each.rule.note,
                "hits": each.hits,
                "why": each.why,
            }
            for each in found.rules
        ],
        "guard": found.guard,
        "verdict": found.verdict.effect,
        "reasons": list(found.verdict.reasons),
    }

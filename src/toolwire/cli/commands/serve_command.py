"""`toolwire serve`: serves tools to MCP clients, by stdin and stdout or by HTTP."""

from __future__ import annotations

import os
import re
import shlex
import socket
import sys
import threading
from collections.abc import Callable
from contextlib import AbstractContextManager, closing, nullcontext
from functools import partial
from pathlib import Path
from typing import Annotated, Any, Literal, cast

import typer

import toolwire
import toolwire.types
from toolwire.cli.client_config import Client, ServedAt, client_config, client_file
from toolwire.cli.commands.policy_command import POLICY_FILE, check_readable, honour
from toolwire.cli.config_watch import ConfigWatch
from toolwire.cli.exit_codes import ExitCode, Stop, exit_codes, wrong_usage
from toolwire.cli.loading import add_operations, add_servers, check_servers, registry_of, say_problems
from toolwire.cli.options import ConfigOption, OpenApiOption, OptionalToolsOption, PolicyOption
from toolwire.cli.output import Output
from toolwire.cli.retention_option import RetentionOption, read_retention, report_text, write_retention
from toolwire.cli.stores import StoreOption, open_store
from toolwire.cli.telemetry import start_telemetry

NO_STORE = "none"
"""The value of --store for a server without one."""

START_WAIT_S = 0.5
"""Seconds to wait for the servers of --config. A client that lists tools once, at its start, has the quick ones."""

SERVED = toolwire.Retention(runs_days=30, log_days=365, results_days=7)
"""What a store keeps that this command made.

A waiting run can be resumed for 30 days, an audit looks back a year, and whole results are looked up in the first week.
"""

EPILOG = f"""\b
Examples:
  toolwire serve --tools tools.py
  toolwire serve --tools tools.py --http 8000
  toolwire serve --openapi shop.yaml
  toolwire serve --config mcp.json --pins mcp-pins.json
  toolwire serve --config mcp.json --mode search
  toolwire serve --config mcp.json --mode code
  toolwire serve --tools t.py --http 0 --token-env KEY
  toolwire serve --tools tools.py --store none
  toolwire serve --tools t.py --http 8000 --stateless
  toolwire serve --config mcp.json --print-config vscode

Without --http, the client is the process that started this one: it talks by
standard input and output. With --http, clients connect to /mcp. The server
ends when its client leaves, or at SIGTERM.

--config serves the tools of other MCP servers: of each server in the table
mcpServers of a JSON or TOML file, which may hold profiles alone. All clients share one process a server.
The server answers at once: a server of the file that is not there yet, or is
down, comes with its tools later, and clients hear of it. One with "required"
ends the command with exit code 3 if it is not there after its connectTimeout,
30 seconds by default. The
file is read again when it changes, and on SIGHUP: servers are added, removed
and replaced, and clients hear of it. With a table profiles in the file, each
client has a token of its own, and sees only the tools of its profile. With a
table auth, people have tokens of an authorization server, and the scopes of a
token give its profile. Clients also get the resources and prompts of these servers.

The policy file is read again in the same way: a changed rule is in force at
the next call.

With OTEL_EXPORTER_OTLP_ENDPOINT, or another variable of OpenTelemetry that says
where to, spans and metrics are sent (toolwire[otel]).

With --stateless no request over HTTP belongs to a session: start the command
several times behind a load balancer, each with the same files and the same
--store of PostgreSQL. It needs tokens if a tool can ask a person.

Calls are on record in the store (--store). What needs a person is asked by
the client, or waits there: decide with `toolwire approvals`. A store that
this command made keeps a run for 30 days after its end, the whole results of
its calls for 7, and the log for 365. --retention keeps them for longer or
shorter, or everything with `none`. Without a store (--store none) nothing is
on record, and only a client that shows forms can ask its person.

{exit_codes("the server could not start", ExitCode.UNUSABLE_TOOLS)}
  143  ended by SIGTERM, with --http"""

app = typer.Typer(rich_markup_mode=None, add_completion=False)

_HOST = "127.0.0.1"
_PinsOption = Annotated[
    Path | None, typer.Option("--pins", metavar="FILE", help="The file of accepted definitions for --config.")
]
_NameOption = Annotated[
    str | None, typer.Option("--name", metavar="NAME", help="The name that clients show; else that of the file.")
]
_AllowHostOption = Annotated[
    list[str] | None,
    typer.Option("--allow-host", metavar="NAME", help="A Host header that is served besides this machine's own."),
]
_TokenOption = Annotated[
    str | None, typer.Option("--token-env", metavar="NAME", help="The variable with the bearer token of --http.")
]
_StatelessOption = Annotated[
    bool, typer.Option("--stateless", help="No request belongs to a session: for several replicas of --http.")
]
_PrintConfigOption = Annotated[
    Client | None,
    typer.Option("--print-config", metavar="CLIENT", help="Print the lines for a client, and serve nothing."),
]


@app.command("serve", epilog=EPILOG)
def serve(
    context: typer.Context,
    tools: OptionalToolsOption = None,
    config: ConfigOption = None,
    openapi: OpenApiOption = None,
    pins: _PinsOption = None,
    mode: Annotated[
        Literal["tools", "search", "code"],
        typer.Option("--mode", metavar="MODE", help="tools; search: the client finds them; code: programs call them."),
    ] = "tools",
    http: Annotated[
        int | None, typer.Option("--http", metavar="PORT", min=0, max=65_535, help="Serve HTTP; 0 is any free port.")
    ] = None,
    host: Annotated[str, typer.Option("--host", metavar="ADDRESS", help="The address of --http.")] = _HOST,
    allow_host: _AllowHostOption = None,
    token_env: _TokenOption = None,
    stateless: _StatelessOption = False,
    name: _NameOption = None,
    policy: PolicyOption = None,
    store: StoreOption = None,
    retention: RetentionOption = None,
    print_config: _PrintConfigOption = None,
) -> None:
    """Serve tools to MCP clients."""
    output: Output = context.obj
    if print_config is not None:
        raise _print_config(context, print_config, output)
    # What the tools print while they are loaded must not reach the client.
    output.keep_stdout()
    _refuse_options_of_http(context)
    watch, token = ConfigWatch(output), _token(token_env, http)
    follow = None if config is None else watch.follow(config, "the servers stay as they were")
    profiles, _ = _read_config(context)
    registry, source = _own_tools(tools or [], config, openapi, pins)
    # These, the port and the store come before the servers, so that a mistake in them starts no server.
    _check_files(pins, policy)
    start_telemetry(registry, output)
    make_server = toolwire.ToolServer  # Imported now: servers that start take the processor for a second.
    with (
        closing(registry),
        _listen(host, http) as port,
        _open_store(store, retention, output) as opened,
        wrong_usage(toolwire.ConfigurationError),
    ):
        if config is not None and follow is not None:
            add_servers(registry, config, pins, START_WAIT_S)
            follow(_update(config, registry, profiles, pins))
        _follow_policy(policy, registry, output, watch)
        server = make_server(
            registry,
            name or source,
            mode=mode,
            version=toolwire.__version__,
            store=opened,
            token=token,
            token_verifier=profiles,
            hosts=allow_host or (),
            stateless=stateless,
        )
        _run_server(server, registry, host, port, output)


def _listen(host: str, port: int | None) -> AbstractContextManager[socket.socket | None]:
    """Opens the port, and ends the command if that fails; None without one. Its clients wait until they are served."""
    if port is None:
        return nullcontext()
    try:
        return socket.create_server((host, port), family=socket.AF_INET6 if ":" in host else socket.AF_INET)
    except OSError as error:
        raise Stop(ExitCode.FAILED, f"the address {host}:{port} cannot be used: {error}") from error


def _check_files(pins: Path | None, policy: str | None) -> None:
    """Ends the command if the file of the pins or of the policy cannot be read."""
    if pins is not None:
        with wrong_usage(toolwire.ConfigurationError):
            toolwire.types.McpPins(pins).states()
    check_readable(policy)


def _refuse_options_of_http(context: typer.Context) -> None:
    given = context.params
    for option, is_given in (
        ("--stateless", given["stateless"]),
        ("--allow-host", given["allow_host"]),
        ("--host", given["host"] != _HOST),
    ):
        if is_given and given["http"] is None:
            raise Stop(ExitCode.WRONG_USAGE, f"{option} is for --http", hint="Give --http PORT, or leave it out.")


def _end_without_required(registry: toolwire.ToolRegistry, output: Output) -> None:
    """Ends the process if a required server did not come in its time. The server is up meanwhile."""
    missing = registry.mcp.wait_for_required()
    for state in missing:
        output.say(f"toolwire: the required server {state.server!r} is not there: {state.reason or 'no answer'}")
    if missing:
        # The processes of the other servers end with their connections; the thread of stdin cannot be woken.
        registry.close()
        os._exit(ExitCode.UNUSABLE_TOOLS)


_PATHS = ("config", "pins", "policy")
"""Options whose values are files, which a client finds by their absolute paths alone."""
_SOURCES = ("tools", "openapi")
"""Options whose values may be files."""


def _print_config(context: typer.Context, client: Client, output: Output) -> typer.Exit:
    """Prints the lines by which the client starts this command, or connects to its port. Returns the command's end."""
    given = context.params
    files = [*(given["tools"] or ()), given["config"], given["openapi"]]
    if not any(files):
        raise Stop(ExitCode.WRONG_USAGE, "there is nothing to serve", hint="Give --tools FILE or --config FILE.")
    _, problems = _read_config(context)
    say_problems(problems)
    name = _usable_name(given["name"] or Path(next(filter(None, files))).stem)
    if given["http"] == 0:
        raise Stop(ExitCode.WRONG_USAGE, "--http 0 is another port each time", hint="Give --http PORT.")
    if given["http"] is not None:
        url = f"http://{given['host']}:{given['http']}/mcp"
        served = ServedAt(name=name, url=url, token_variable=given["token_env"])
    else:
        # A client may have another PATH than this terminal, and starts the command in a folder whose files must not
        # be imported in place of modules.
        command = [sys.executable, "-P", "-m", "toolwire", "serve", *_options(context)]
        served = ServedAt(name=name, command=command)
    output.say(f"These lines go into {client_file(client)}:")
    output.result(client_config(client, served))
    return typer.Exit()


def _usable_name(text: str) -> str:
    """Returns a name that all clients take: of ASCII letters, digits, `_` and `-`."""
    return re.sub(r"[^A-Za-z0-9_-]+", "_", text).strip("_") or "toolwire"


def _options(context: typer.Context) -> list[str]:
    """Returns the options that were given, with absolute paths of files."""
    found: list[str] = []
    for option in context.command.params:
        source = context.get_parameter_source(option.name or "")
        if option.name == "print_config" or source is None or source.name != "COMMANDLINE":
            continue
        value: Any = context.params[option.name or ""]
        for one in cast("list[Any]", value) if isinstance(value, list) else [value]:
            found += [option.opts[0], _make_absolute(option.name or "", str(one))]
    return found


def _make_absolute(option: str, text: str) -> str:
    """Returns a value as another folder needs it: the path of a file or of a store is absolute."""
    if option in _PATHS or (option in _SOURCES and Path(text).exists()):
        return str(Path(text).resolve())
    if option != "store" or text == NO_STORE:
        return text
    kind, mark, path = text.rpartition("sqlite:///")
    is_path = (mark and not kind and path and not path.startswith(("/", ":"))) or ":" not in text
    return f"{mark}{Path(path).resolve()}" if is_path else text


def _open_store(
    store: str | None, retention: str | None, output: Output
) -> AbstractContextManager[toolwire.Store | None]:
    """Opens the store; None for a server without one."""
    given = None if retention is None else read_retention(retention)
    if store != NO_STORE:
        return open_store(store, make=True, choose=partial(_choose_retention, given=given, named=store, output=output))
    if given not in (None, toolwire.Retention()):
        raise Stop(ExitCode.WRONG_USAGE, "--retention is for a store", hint="Name one with --store, or leave it out.")
    return nullcontext()


def _choose_retention(
    store: toolwire.Store, *, given: toolwire.Retention | None, named: str | None, output: Output
) -> toolwire.Retention | None:
    """Returns the retention of the store. One that this command did not make keeps everything, and a line says so."""
    if given is not None:
        return given
    if (first := store.first_retention()) is not None:
        return first
    if not store.log_length() and not store.runs(limit=1):
        return SERVED
    # It may take some time, and the server need not wait for it.
    threading.Thread(target=_say_what_is_old, args=(store, named, output), daemon=True).start()
    return None


def _say_what_is_old(store: toolwire.Store, named: str | None, output: Output) -> None:
    try:
        report = store.retain(SERVED, dry_run=True)
    except toolwire.ToolwireError:
        # The server has ended, or its first call says that the store cannot be used.
        return
    where = f" --store {shlex.quote(named)}" if named else ""
    output.say(
        f"the store keeps everything; `toolwire store prune --retention {write_retention(SERVED)}{where}` would delete "
        f"{report_text(report)}"
    )


def _run_server(
    server: toolwire.ToolServer,
    registry: toolwire.ToolRegistry,
    host: str,
    port: socket.socket | None,
    output: Output,
) -> None:
    # A client reads on with it in a result that is longer than the server's limit.
    registry.configure(result_pages=True)
    threading.Thread(target=_end_without_required, args=(registry, output), daemon=True).start()
    if port is None:
        output.give_back()
        server.run_stdio()
    else:
        server.run_http(host, port, on_start=lambda url: output.say(f"serving {server.name} at {url}"))


def _own_tools(
    tools: list[str], config: Path | None, openapi: str | None, pins: Path | None
) -> tuple[toolwire.ToolRegistry, str]:
    """Returns the tools to serve without those of servers, and the name of the first file of all."""
    if config is None and (pins is not None or not (tools or openapi)):
        wrong, hint = (
            ("--pins is for --config", "Give --config FILE, or leave it out.")
            if pins
            else ("there is nothing to serve", "Give --tools FILE, --config FILE or --openapi FILE.")
        )
        raise Stop(ExitCode.WRONG_USAGE, wrong, hint=hint)
    registry = registry_of(tools) if tools else toolwire.ToolRegistry()
    if openapi is not None:
        add_operations(registry, openapi)
    return registry, Path(next(filter(None, [*tools, config, openapi]), "")).stem


def _read_config(
    context: typer.Context,
) -> tuple[toolwire.ClientProfiles | None, list[toolwire.types.McpServerProblem]]:
    """Reads the file of --config, and starts no server. Ends the command if the file cannot be used.

    Returns its profiles, None without any, and the mistakes in entries that others go on without.
    """
    given = context.params
    config: Path | None = given["config"]
    if config is None:
        return None, []
    profiles = _profiles(config, given["http"], given["token_env"])
    has_tools = bool(given["tools"] or given["openapi"])
    read = check_servers(config, has_tools=has_tools, has_profiles=profiles is not None)
    has_tokens = profiles is not None or given["token_env"] is not None
    # `ToolServer` refuses this too, when they run already.
    if read.servers and given["stateless"] and not has_tokens and given["store"] != NO_STORE:
        wrong = (
            f"--stateless without a token: the MCP server {read.servers[0].client.name!r} can ask a person, and "
            "nothing tells the clients apart that wait for an answer"
        )
        hint = "Give --token-env NAME, profiles in the file, or --store none."
        raise Stop(ExitCode.WRONG_USAGE, wrong, hint=hint)
    return profiles, read.problems


def _profiles(config: Path, http: int | None, token_env: str | None) -> toolwire.ClientProfiles | None:
    """Returns the profiles of the configuration; None without any."""
    with wrong_usage(toolwire.ConfigurationError):
        profiles = toolwire.ClientProfiles(config)
    if not len(profiles):
        return None
    if http is None:
        raise Stop(ExitCode.WRONG_USAGE, f"the profiles of {config} are for --http", hint="Give --http PORT.")
    if token_env is not None:
        raise Stop(ExitCode.WRONG_USAGE, f"{config} has profiles with tokens", hint="Leave --token-env out.")
    return profiles


def _follow_policy(named: str | None, registry: toolwire.ToolRegistry, output: Output, watch: ConfigWatch) -> None:
    """Applies the policy file, and again whenever it changes. Rules of the tools' own registry stay."""
    file = Path(named or POLICY_FILE)
    if named is None and not file.exists():
        return
    follow, own = watch.follow(file, "the rules stay as they were"), registry.policy
    honour(named, registry, output)

    def update() -> str:
        registry.configure(policy=own, rules=file)
        return f"the rules are those of {file} now"

    follow(update)


def _update(
    config: Path, registry: toolwire.ToolRegistry, profiles: toolwire.ClientProfiles | None, pins: Path | None
) -> Callable[[], str]:
    """Returns the function that makes the servers and profiles those of the file. It hides tools from now on."""
    if profiles is not None:
        registry.configure(visible=profiles.sees)

    def update() -> str:
        if profiles is not None:
            # Before the servers, so that no new server is seen by an old profile.
            profiles.update(config)
        elif len(toolwire.ClientProfiles(config)):
            raise toolwire.ConfigurationError(f"{config} has profiles now: restart the server to use them")
        problems = registry.mcp.update(config, pins=pins)
        off = len({problem.server for problem in problems if problem.is_off})
        former = len({problem.server for problem in problems if problem.is_former})
        return (
            f"the servers are those of {config} now"
            + (f"; {former} of them with a former entry" if former else "")
            + (f"; {off} cannot be used" if off else "")
        )

    return update


def _token(variable: str | None, http: int | None) -> str | None:
    if variable is None:
        return None
    if http is None:
        raise Stop(ExitCode.WRONG_USAGE, "--token-env is for --http", hint="Give --http PORT, or leave it out.")
    token = os.environ.get(variable, "")
    if not token.strip():
        raise Stop(ExitCode.WRONG_USAGE, f"the variable {variable} has no token", hint="Set it, or leave it out.")
    return token

"""Reads the `mcpServers` that users have in a file. An entry that cannot be used is a problem of that server alone."""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, NamedTuple, cast

from toolwire.definition.naming import is_named
from toolwire.mcp.client import NAME_CHARACTERS, MCPClient, name_in_tools
from toolwire.mcp.client_limits import McpLimitOptions
from toolwire.mcp.config_files import servers_in
from toolwire.mcp.env_file import read_env_file
from toolwire.mcp.oauth.authorization import McpCredentials, McpLogin, is_private
from toolwire.mcp.values.call_limits import CallLimits, read_call_limits
from toolwire.mcp.values.features import FEATURES, Feature
from toolwire.vocabulary.errors import ConfigurationError

MILLISECONDS_FROM = 1_000
"""A `timeout` of this or more is in milliseconds, because some clients write them. Less is in seconds."""

LONGEST_S = 31_536_000
"""Maximum seconds of a time, which are a year. No clock of the system waits for longer ones."""

PROTOCOLS = ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25", "2026-07-28")
"""The versions of the protocol that `protocol` of an entry may name, as the SDK speaks them."""

Choice = Literal["enabled", "disabled", "presets", "renames", "descriptions"]
"""What an entry says about single tools of its server."""
_KEYS_OF: Mapping[Choice, tuple[str, ...]] = {
    "enabled": ("includeTools", "enabled_tools"),
    "disabled": ("excludeTools", "disabledTools", "disabled_tools"),
    "presets": ("defaults",),
    "renames": ("rename",),
    "descriptions": ("describe",),
}
_LISTS: tuple[Choice, ...] = ("enabled", "disabled")

Transport = Literal["stdio", "http", "sse"]
_TRANSPORTS: Mapping[str, Transport] = {
    **dict.fromkeys(("http", "streamable-http", "streamable_http", "streamableHttp"), "http"),
    "stdio": "stdio",
    "sse": "sse",
}
_OTHER_KEYS: Mapping[str, str] = {
    **dict.fromkeys(("serverUrl", "httpUrl"), "url"),
    "startup_timeout_sec": "connectTimeout",
    "tool_timeout_sec": "timeout",
    "http_headers": "headers",
    "enabled_tools": "includeTools",
    "disabled_tools": "disabledTools",
}
"""Keys of Windsurf, of Gemini CLI and of Codex, and what they are called here."""

_GRANTS = ("alwaysAllow", "autoApprove", "trust", "default_tools_approval_mode")
_NO_GRANT = "grants nothing here: write a rule with effect='auto' for tools that may run unasked"
_SILENT = (
    "dev",
    "description",
    "name",
    "title",
    "version",
    "gallery",
    "icon",
    "source",
    "supports_parallel_tool_calls",
)
"""Keys that change nothing about how a server is used."""
_TOOL_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,63}")
_NOT_IN_NAMES = re.compile(r"[^A-Za-z0-9_-]+")
_VARIABLE = re.compile(r"\$\{([^}]*)\}")
_BARE_VARIABLE = re.compile(r"\$[A-Za-z_]\w*", re.ASCII)
"""A variable as Gemini CLI has it too. Here it is a text, because passwords may begin with this character."""


@dataclass(frozen=True, slots=True, kw_only=True)
class McpServerProblem:
    """A fault of one server of a configuration.

    Attributes:
        server: The name of the server.
        place: The file, and the key in it.
        reason: The fault, and how to mend it.
        is_off: True if the server is not used for it.
        is_former: True if the server goes on with the entry that it had before.
        is_required: True if the entry says that a gateway is not ready without the server.
    """

    server: str
    place: str
    reason: str
    is_off: bool
    is_former: bool = False
    is_required: bool = False

    def __str__(self) -> str:
        state = "goes on with its former entry" if self.is_former else "is off" if self.is_off else "is on"
        return f"{self.place}: {self.reason}. The MCP server {self.server!r} {state}"


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfiguredServer:
    """One server of a configuration.

    Attributes:
        client: Its client, which is not connected yet.
        place: The file, and the key in it.
        entry: The keys of the entry that count, as they stand in the configuration.
        enabled: The tools to offer, by name or pattern such as `read_*`; None offers all.
        disabled: The tools to leave out, by name or pattern.
        is_required: True if a gateway is not ready without the server.
        renames: Other names for its tools, by its own names.
        descriptions: Other descriptions of its tools, by its own names.
        defaults: Arguments of its tools that each call has. No model sees them, and no caller gives others.
        limits: The limits of each of its tools, for all clients of a gateway together; None without any.
    """

    client: MCPClient
    place: str
    entry: Mapping[str, Any]
    enabled: tuple[str, ...] | None = None
    disabled: tuple[str, ...] = ()
    is_required: bool = False
    renames: Mapping[str, str] = field(default_factory=dict[str, str])
    descriptions: Mapping[str, str] = field(default_factory=dict[str, str])
    defaults: Mapping[str, Mapping[str, Any]] = field(default_factory=dict[str, Mapping[str, Any]])
    limits: CallLimits | None = None

    def offers(self, tool: str) -> bool:
        """True if the entry offers a tool that the server has."""
        return (self.enabled is None or is_named(tool, self.enabled)) and not is_named(tool, self.disabled)

    def place_of(self, choice: Choice, tool: str) -> str:
        """Returns the file, and the key in it that names this tool of the server."""
        there = [key for key in _KEYS_OF[choice] if key in self.entry]
        key = next((key for key in there if tool in self.entry[key]), there[0])
        return f"{self.place}.{key}" if choice in _LISTS else f"{self.place}.{key}.{tool}"


class ReadServers(NamedTuple):
    """The servers of a configuration."""

    servers: list[ConfiguredServer]
    """Those that are on."""
    problems: list[McpServerProblem]
    """The faults of all entries."""
    disabled: list[str]
    """The names of those whose entries say that they are disabled."""


def read_servers(config: Mapping[str, Any] | str | Path, environ: Mapping[str, str] | None = None) -> ReadServers:
    """Returns the servers of a configuration.

    `config` is the path of a JSON or TOML file, or what it holds. `environ` gives the variables; None: the process's.

    Raises:
        ConfigurationError: The file cannot be read, or holds no table of servers.
    """
    where = "config" if isinstance(config, Mapping) else str(config)
    table, key = servers_in(config, where)
    found: list[ConfiguredServer] = []
    problems: list[McpServerProblem] = []
    disabled: list[str] = []
    taken: dict[str, str] = {}
    for written, entry in table.items():
        name = usable_name(written)
        reading = _Entry(name, entry, f"{where}: {key}.{written}", os.environ if environ is None else environ)
        server = reading.server(taken.get(name_in_tools(name)))
        if not reading.is_disabled:
            taken.setdefault(name_in_tools(name), written)
        if not isinstance(config, Mapping) and server is not None and server.client.login_command:
            server.client.login_command = f"toolwire mcp login {name} --config {shlex.quote(where)}"
        problems += reading.problems
        if server is not None:
            found.append(server)
        elif reading.is_disabled:
            disabled.append(name)
    return ReadServers(found, problems, disabled)


def usable_name(written: str) -> str:
    """Returns the name of a server with `_` for characters that a name cannot have: `My Notes` is `My_Notes`."""
    return _NOT_IN_NAMES.sub("_", written.strip()).strip("_") or written


def fill_variables(text: str, environ: Mapping[str, str] | None = None) -> str:
    """Returns a text with its variables filled in. `environ` gives them; None: the process's.

    Raises:
        ValueError: A variable is not set, or is written wrongly. The message says what to do.
    """
    variables = os.environ if environ is None else environ

    def value_of(found: re.Match[str]) -> str:
        name, has_default, default = found[1].removeprefix("env:").partition(":-")
        # A variable in a default would end at the wrong bracket.
        if not re.fullmatch(r"[A-Za-z_]\w*", name) or "${" in default:
            raise ValueError(
                f"${{{found[1]}}} cannot be filled in: write ${{NAME}}, ${{NAME:-default}} or ${{env:NAME}}"
            )
        value = variables.get(name)
        if has_default:
            return value or default
        if value is None:
            raise ValueError(f"the environment has no variable {name}: set it, or write ${{{name}:-default}}")
        return value

    return _VARIABLE.sub(value_of, text)


def _are_approval_modes(tools: object) -> bool:
    """Returns whether it is the table in which Codex keeps which tools of a server its person has allowed."""
    entries = [*cast("Mapping[str, Any]", tools).values()] if isinstance(tools, Mapping) else []
    return bool(entries) and all(isinstance(one, Mapping) and {*one} == {"approval_mode"} for one in entries)


class _Wrong(Exception):
    """An entry cannot be used."""

    def __init__(self, key: str, reason: str) -> None:
        super().__init__(reason)
        self.key, self.reason = key, reason


class _Entry:
    """The entry of one server, while it is read."""

    def __init__(self, name: str, entry: object, place: str, environ: Mapping[str, str]) -> None:
        self._name, self._entry, self._place, self._environ = name, entry, place, environ
        self.problems: list[McpServerProblem] = []
        self.is_disabled = False
        # Asked of an entry that cannot be used as well.
        self._is_required = isinstance(entry, Mapping) and cast("Mapping[str, Any]", entry).get("required") is True

    def server(self, before: str | None) -> ConfiguredServer | None:
        """Returns the server; None if it is disabled or cannot be used.

        `before` is a server that stands before it, and whose tools have the same names; None without one.
        """
        try:
            entry = self._table("", self._entry)
            self.is_disabled = self._flag(entry, "disabled") | (not self._flag(entry, "enabled", default=True))
            if self.is_disabled:
                return None
            if before is not None:
                other = f"{self._name[: NAME_CHARACTERS - 2]}_2"
                raise _Wrong("", f"its tools would be named as those of {before!r:.80}: name it {other!r}, for example")
            return self._make_server(self._translate(entry), dict(entry))
        except _Wrong as wrong:
            self._report(wrong.key, wrong.reason, is_off=True)
        except ConfigurationError as error:
            self._report("", str(error), is_off=True)
        return None

    def _translate(self, given: Mapping[str, Any]) -> dict[str, Any]:
        """Returns the entry with the keys that it has here. Names of variables become texts with them."""
        entry = dict(given)
        for other, own in _OTHER_KEYS.items():
            if other in entry and own in entry:
                raise _Wrong(other, f"says the same as {own}: write one of them")
            if other in entry:
                entry[own] = entry.pop(other)
        headers = {header: f"${{{name}}}" for header, name in self._table_of_texts(entry, "env_http_headers").items()}
        if "bearer_token_env_var" in entry:
            headers["Authorization"] = f"Bearer ${{{entry.pop('bearer_token_env_var')}}}"
        # Codex passes those on that are there.
        variables = {name: f"${{{name}}}" for name in self._texts(entry, "env_vars") if name in self._environ}
        for key, more in (("headers", headers), ("env", variables)):
            if more:
                entry[key] = {**self._table(key, entry.get(key) or {}), **more}
        return entry

    def _table_of_texts(self, entry: dict[str, Any], key: str) -> dict[str, str]:
        return {name: str(text) for name, text in self._table(key, entry.pop(key, None) or {}).items()}

    def _make_server(self, entry: dict[str, Any], written: Mapping[str, Any]) -> ConfiguredServer:
        if _are_approval_modes(entry.get("tools")):
            self._report("tools", _NO_GRANT)
            del entry["tools"]
        for key in [key for key in _GRANTS if entry.pop(key, None)]:
            self._report(key, _NO_GRANT)
        for key in _SILENT:
            entry.pop(key, None)
        transport = self._transport(entry)
        limits = self._limits(entry)
        variables = self._variables(entry) if transport == "stdio" else {}
        protocol, is_required = self._protocol(entry), self._flag(entry, "required")
        is_sanitised = self._flag(entry, "sanitise")
        call_limits, allowed = self._call_limits(entry), self._features(entry)
        renames, descriptions = self._renames(entry), self._pairs(entry, "describe")
        given = self._table("defaults", entry.pop("defaults", {}))
        defaults = {tool: self._table(f"defaults.{tool}", values) for tool, values in given.items()}
        enabled = self._texts(entry, "includeTools") if "includeTools" in entry else None
        disabled = (*self._texts(entry, "excludeTools"), *self._texts(entry, "disabledTools"))
        if transport == "stdio":
            client = MCPClient.stdio(
                self._name,
                self._text(entry, "command"),
                self._texts(entry, "args"),
                variables,
                self._text(entry, "cwd") if "cwd" in entry else None,
                **limits,
            )
        else:
            make = MCPClient.http if transport == "http" else MCPClient.sse
            url, headers = self._text(entry, "url"), self._pairs(entry, "headers")
            client = make(self._name, url, headers, self._auth(entry, url, headers), **limits)
        if protocol is not None:
            client.protocol = protocol
        if is_sanitised:
            client.offers.is_sanitised = True
        if allowed:
            client.offers.allow(allowed)
        for key in entry:
            if "tool" in key.lower():
                # It may be meant to take tools away, so the server must not be on without it.
                raise _Wrong(key, "is not known: write includeTools, excludeTools or disabledTools")
            self._report(key, "is not known, and was not read")
        ignored = {*entry, *_GRANTS, *_SILENT, "tools"}
        return ConfiguredServer(
            client=client,
            place=self._place,
            entry={key: value for key, value in written.items() if key not in ignored},
            enabled=enabled,
            disabled=disabled,
            is_required=is_required,
            renames=renames,
            descriptions=descriptions,
            defaults=defaults,
            limits=call_limits,
        )

    def _transport(self, entry: dict[str, Any]) -> Transport:
        given = {key: entry.pop(key) for key in ("type", "transport") if key in entry}
        for key, value in given.items():
            if not isinstance(value, str) or value not in _TRANSPORTS:
                raise _Wrong(key, f"{value!r:.80} is not a transport: write stdio, http or sse")
        kinds: set[Transport] = {_TRANSPORTS[value] for value in given.values()}
        if len(kinds) > 1:
            raise _Wrong("transport", "differs from type: write one of them")
        by_key: Transport = "http" if "url" in entry and "command" not in entry else "stdio"
        transport = kinds.pop() if kinds else by_key
        needed, other = ("command", "url") if transport == "stdio" else ("url", "command")
        if entry.get(needed, "") == "":
            raise _Wrong(needed, f"is missing: a server with {transport} needs it")
        if other in entry:
            raise _Wrong(other, f"does not belong to a server with {transport}: leave it out, or write another type")
        return transport

    def _auth(
        self, entry: dict[str, Any], url: str, headers: Mapping[str, str]
    ) -> McpLogin | McpCredentials | Literal["oauth"] | None:
        """Returns how the client proves itself. A server at a URL may ask for a login, as in other clients."""
        key = "oauth" if "oauth" in entry else "auth"
        if key not in entry:
            has_token = any(name.lower() == "authorization" for name in headers)
            return "oauth" if not has_token and is_private(url, url) else None
        given = entry.pop(key)
        if given in (True, "oauth"):
            return "oauth"
        if given in (False, None):
            return None
        if not isinstance(given, Mapping):
            raise _Wrong(key, "write 'oauth' or a table such as {'clientId': '...'}; a token belongs in headers")
        # Other clients write clientId, client_id or CLIENT_ID.
        table: dict[str, Any] = {
            name.lower().replace("_", ""): value for name, value in self._table(key, cast("object", given)).items()
        }
        if table.pop("enabled", True) is False:
            return None
        scope = " ".join(self._texts(table, "scopes")) if "scopes" in table else self._optional_text(table, "scope")
        known = {
            "client_id": self._optional_text(table, "clientid"),
            "client_secret": self._optional_text(table, "clientsecret"),
            "issuer": self._optional_text(table, "issuer"),
            "scope": scope,
        }
        grant: object = table.pop("granttype", "authorization_code")
        port: Any = table.pop("callbackport", 0)
        for name in table:
            self._report(f"{key}.{name}", "is not known, and was not read")
        if grant == "authorization_code":
            return McpLogin(**known, callback_port=port)
        if grant != "client_credentials":
            raise _Wrong(f"{key}.grantType", "write authorization_code or client_credentials")
        needed = {name: value for name, value in known.items() if value is not None}
        if not {"client_id", "client_secret", "issuer"} <= needed.keys():
            raise _Wrong(key, "client_credentials need clientId, clientSecret and issuer")
        return McpCredentials(**needed)

    def _optional_text(self, table: dict[str, Any], key: str) -> str | None:
        return self._text(table, key) if table.get(key) is not None else table.pop(key, None)

    def _limits(self, entry: dict[str, Any]) -> McpLimitOptions:
        limits: McpLimitOptions = {}
        if "timeout" in entry:
            seconds = self._seconds(entry, "timeout")
            limits |= {"call_s": seconds, "call_max_s": max(seconds, 600.0)}
        if "connectTimeout" in entry:
            limits["connect_s"] = self._seconds(entry, "connectTimeout")
        return limits

    def _seconds(self, entry: dict[str, Any], key: str) -> float:
        value = entry.pop(key)
        longest = LONGEST_S * MILLISECONDS_FROM
        if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value <= longest:
            raise _Wrong(
                key, f"{value!r:.80} is not a time: write seconds, or milliseconds from 1000 on, for at most a year"
            )
        return value / 1000 if value >= MILLISECONDS_FROM else float(value)

    def _variables(self, entry: dict[str, Any]) -> dict[str, str]:
        """Returns the variables of a process. Those of `env` count more than those of `envFile`."""
        given = self._text(entry, "envFile") if "envFile" in entry else ""
        try:
            return {**(read_env_file(given) if given else {}), **self._pairs(entry, "env")}
        except ValueError as error:
            raise _Wrong("envFile", str(error)) from error

    def _protocol(self, entry: dict[str, Any]) -> str | None:
        given = entry.pop("protocol", None)
        if given is not None and given not in PROTOCOLS:
            raise _Wrong("protocol", f"{given!r:.80} is not known: write one of {', '.join(PROTOCOLS)}")
        return given

    def _call_limits(self, entry: dict[str, Any]) -> CallLimits | None:
        try:
            return read_call_limits(entry.pop("limits")) if "limits" in entry else None
        except ValueError as error:
            key, _, reason = str(error).partition(": ")
            raise _Wrong(key, reason) from error

    def _features(self, entry: dict[str, Any]) -> list[Feature]:
        given = self._texts(entry, "allow")
        for place, feature in enumerate(given):
            if feature not in FEATURES:
                raise _Wrong(f"allow[{place}]", f"{feature!r:.80} is not known: write sampling or roots")
        return cast("list[Feature]", list(given))

    def _renames(self, entry: dict[str, Any]) -> dict[str, str]:
        renames = self._pairs(entry, "rename")
        for own, name in renames.items():
            if not _TOOL_NAME.fullmatch(name):
                raise _Wrong(f"rename.{own}", f"{name!r:.80} is not a name: write letters, digits, '_', '-' and '.'")
        return renames

    def _flag(self, entry: dict[str, Any], key: str, *, default: bool = False) -> bool:
        given = entry.pop(key, default)
        if not isinstance(given, bool):
            raise _Wrong(key, f"{given!r:.80}: write true or false")
        return given

    def _text(self, entry: dict[str, Any], key: str) -> str:
        return self._fill_text(key, entry.pop(key))

    def _texts(self, entry: dict[str, Any], key: str) -> tuple[str, ...]:
        given = entry.pop(key, ())
        if isinstance(given, str) or not isinstance(given, Iterable):
            raise _Wrong(key, f"{given!r:.80} is not a list of texts")
        return tuple(
            self._fill_text(f"{key}[{place}]", text) for place, text in enumerate(cast("Iterable[Any]", given))
        )

    def _pairs(self, entry: dict[str, Any], key: str) -> dict[str, str]:
        pairs = self._table(key, entry.pop(key, None) or {})
        return {name: self._fill_text(f"{key}.{name}", text) for name, text in pairs.items()}

    def _table(self, key: str, given: object) -> dict[str, Any]:
        if not isinstance(given, Mapping):
            raise _Wrong(key, "write a table of texts" if key else "write a table, such as {'command': 'npx'}")
        return dict(cast("Mapping[str, Any]", given))

    def _fill_text(self, key: str, text: object) -> str:
        """Returns a text with its variables filled in."""
        if not isinstance(text, str):
            raise _Wrong(key, "write a text")
        if _BARE_VARIABLE.fullmatch(text):
            # The text itself may be a secret.
            self._report(key, "a text such as $NAME is passed on as it stands: write ${NAME} for a variable")
        try:
            return fill_variables(text, self._environ)
        except ValueError as error:
            raise _Wrong(key, str(error)) from None

    def _report(self, key: str, reason: str, *, is_off: bool = False) -> None:
        place = f"{self._place}.{key}" if key else self._place
        self.problems.append(
            McpServerProblem(
                server=self._name, place=place, reason=reason, is_off=is_off, is_required=self._is_required
            )
        )

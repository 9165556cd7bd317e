"""Profiles: each client of a server has a token of its own, and sees only the tools of its profile."""

from __future__ import annotations

import hashlib
import hmac
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from toolwire.definition.naming import is_named
from toolwire.mcp.config import fill_variables
from toolwire.mcp.config_files import PROFILES, content_of, servers_in
from toolwire.mcp.values.call_limits import CallLimits, read_call_limits
from toolwire.vocabulary.calls import CODE_EXECUTION, READ_RESULT, SEARCH_TOOLS, Caller
from toolwire.vocabulary.errors import ConfigurationError

if TYPE_CHECKING:
    from mcp.server.auth.provider import AccessToken

WAYS = (CODE_EXECUTION, READ_RESULT, SEARCH_TOOLS)
"""The tools of code mode. Each profile has them, where a server has them, unless it excludes them.

They lead to no tool that the profile lacks.
"""
_KEYS = {"token", "tools", "excludeTools", "limits"}
_SHA256 = re.compile(r"sha256:([0-9a-f]{64})")
_VARIABLE = re.compile(r"\$\{(env:)?[A-Za-z_]\w*\}")


@dataclass(frozen=True, slots=True, kw_only=True)
class _Profile:
    token: bytes
    """The SHA-256 of the token."""
    tools: tuple[str, ...]
    excluded: tuple[str, ...]
    limits: CallLimits | None


class ClientProfiles:
    """The clients of a server by their tokens, and the tools that each of them sees. Give it to both parts:

    >>> profiles = ClientProfiles({"support": {"token": "${SUPPORT_TOKEN}", "tools": ["issues/*"]}})
    >>> registry = ToolRegistry(visible=profiles.sees)
    >>> server = ToolServer(registry, "gateway", token_verifier=profiles)

    A tool that a client does not see is unknown to it, in lists, searches, calls and programs. The principal of a
    client is the name of its profile; any other principal sees nothing.
    """

    def __init__(self, profiles: Mapping[str, Any] | str | Path) -> None:
        """Takes the profiles by name, or the path of a JSON or TOML file with a table `profiles`.

        The table stands beside `mcpServers`, or alone.

        Each has `token`, a variable of the environment such as `${SUPPORT_TOKEN}`, or `sha256:` and the 64 hexadecimal
        digits of the token's SHA-256; `tools`, names or patterns of the tools that the client sees, such as
        `issues/*`; and perhaps `excludeTools`, which it does not see, and `limits` of all its calls together, such as
        `{"rate": "60/min", "concurrency": 4}`. A profile has `code_execution`, `search_tools` and `read_result` too,
        where a server has them, unless it excludes them.

        Raises:
            ConfigurationError: A profile cannot be used, or two have the same token.
        """
        self._profiles = _read_profiles(profiles)
        self.revision = 0
        """A number that grows with each `update`. Clients of a `ToolServer` hear of it."""

    def __len__(self) -> int:
        return len(self._profiles)

    def update(self, profiles: Mapping[str, Any] | str | Path) -> None:
        """Replaces all profiles. They are in force at the next request.

        Raises:
            ConfigurationError: As above. All profiles stay as they were.
        """
        self._profiles = _read_profiles(profiles)
        self.revision += 1

    def sees(self, tool: str, caller: Caller) -> bool:
        """True if the caller's profile has the tool. It is a `visible` of `ToolRegistry`."""
        profile = self._profiles.get(caller.principal)
        return profile is not None and is_named(tool, (*WAYS, *profile.tools)) and not is_named(tool, profile.excluded)

    def limits_of(self, principal: str) -> CallLimits | None:
        """Returns the limits of a client's calls, which `toolwire serve` applies; None without any."""
        profile = self._profiles.get(principal)
        return None if profile is None else profile.limits

    async def verify_token(self, token: str) -> AccessToken | None:
        """Returns the access of the profile with this token, or None. It is a `token_verifier` of `ToolServer`."""
        from mcp.server.auth.provider import AccessToken

        # The middleware decodes headers as Latin-1. Each token is compared, in constant time.
        given = hashlib.sha256(token.encode("latin-1", "replace")).digest()
        found = [name for name, profile in self._profiles.items() if hmac.compare_digest(given, profile.token)]
        return AccessToken(token=token, client_id=found[0], scopes=[]) if found else None


def _table(profiles: Mapping[str, Any] | str | Path) -> tuple[object, str]:
    """Returns the profiles, and the place where they stand."""
    if not isinstance(profiles, str | Path):
        return profiles, PROFILES
    content = cast("Mapping[str, object]", content_of(profiles, str(profiles)))
    # A file whose table of servers is misspelt is refused as a whole: its profiles must not be in force alone.
    servers_in(content, str(profiles))
    if PROFILES not in content:
        return {}, PROFILES
    if not content[PROFILES]:
        raise ConfigurationError(f"{profiles}: {PROFILES} is empty: give each client one, or leave the table out")
    return content[PROFILES], f"{profiles}: {PROFILES}"


def _read_profiles(profiles: Mapping[str, Any] | str | Path) -> dict[str, _Profile]:
    table, where = _table(profiles)
    if not isinstance(table, Mapping):
        raise ConfigurationError(f"{where}: write a table such as {{'support': {{'token': '${{NAME}}', 'tools': []}}}}")
    read = {name: _profile(name, entry, f"{where}.{name}") for name, entry in cast("Mapping[str, Any]", table).items()}
    owners: dict[bytes, str] = {}
    for name, profile in read.items():
        if profile.token in owners:
            raise ConfigurationError(
                f"{where}.{name}.token is that of {owners[profile.token]!r} too: give each its own"
            )
        owners[profile.token] = name
    return read


def _profile(name: str, entry: Any, where: str) -> _Profile:
    if not name.strip() or not isinstance(entry, Mapping) or not {"token", "tools"} <= set(cast("Any", entry)):
        raise ConfigurationError(f"{where}: write a name, and its 'token' and 'tools'")
    written = dict(cast("Mapping[str, Any]", entry))
    if unknown := sorted(map(str, written.keys() - _KEYS)):
        raise ConfigurationError(f"{where}.{unknown[0]} is not known: write {', '.join(sorted(_KEYS))}")
    return _Profile(
        token=_digest(written["token"], f"{where}.token"),
        tools=_require_patterns(written["tools"], f"{where}.tools"),
        excluded=_require_patterns(written.get("excludeTools", ()), f"{where}.excludeTools"),
        limits=_limits(written["limits"], where) if "limits" in written else None,
    )


def _limits(written: Any, where: str) -> CallLimits:
    try:
        return read_call_limits(written)
    except ValueError as error:
        raise ConfigurationError(f"{where}.{error}") from None


def _digest(written: Any, where: str) -> bytes:
    """Returns the SHA-256 of the token that is written as a variable, or as this digest."""
    if isinstance(written, str) and (found := _SHA256.fullmatch(written)):
        return bytes.fromhex(found[1])
    if not isinstance(written, str) or not _VARIABLE.fullmatch(written):
        raise ConfigurationError(
            f"{where}: write a variable of the environment, as ${{NAME}}, and no token; "
            "or sha256: and the 64 digits of its SHA-256"
        )
    try:
        token = fill_variables(written)
    except ValueError as error:
        raise ConfigurationError(f"{where}: {error}") from None
    if not token.strip():
        raise ConfigurationError(f"{where}: the variable has no token: set it")
    return hashlib.sha256(token.encode()).digest()


def _require_patterns(given: Any, where: str) -> tuple[str, ...]:
    texts = tuple(cast("Iterable[Any]", given)) if isinstance(given, list | tuple) else (None,)
    if not all(isinstance(text, str) for text in texts):
        raise ConfigurationError(f"{where}: write a list of names or patterns, such as ['issues/*']")
    return cast("tuple[str, ...]", texts)

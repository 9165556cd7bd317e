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
from toolwire.gateway.profiles.issuer_table import Issuer, read_issuer
from toolwire.mcp.config import fill_variables
from toolwire.mcp.config_files import AUTH, PROFILES, content_of, may_have_other_profiles, servers_in
from toolwire.mcp.values.call_limits import CallLimits, read_call_limits
from toolwire.vocabulary.calls import CODE_EXECUTION, READ_RESULT, SEARCH_TOOLS, Caller
from toolwire.vocabulary.errors import ConfigurationError

if TYPE_CHECKING:
    from mcp.server.auth.provider import AccessToken

    from toolwire.gateway.profiles.issuer_tokens import IssuerTokens

WAYS = (CODE_EXECUTION, READ_RESULT, SEARCH_TOOLS)
"""The tools of code mode. Each profile has them, where a server has them, unless it excludes them.

They lead to no tool that the profile lacks.
"""
_KEYS = {"token", "tools", "excludeTools", "limits"}
_SHA256 = re.compile(r"sha256:([0-9a-f]{64})")
_VARIABLE = re.compile(r"\$\{(env:)?[A-Za-z_]\w*\}")


@dataclass(frozen=True, slots=True, kw_only=True)
class _Profile:
    token: bytes | None
    """The SHA-256 of the token; None if scopes alone give the profile."""
    tools: tuple[str, ...]
    excluded: tuple[str, ...]
    limits: CallLimits | None


class ClientProfiles:
    """The clients of a server by their tokens, and the tools that each of them sees. Give it to both parts:

    >>> profiles = ClientProfiles({"support": {"token": "${SUPPORT_TOKEN}", "tools": ["issues/*"]}})
    >>> registry = ToolRegistry(visible=profiles.sees)
    >>> server = ToolServer(registry, "gateway", token_verifier=profiles)

    A tool that a client does not see is unknown to it, in lists, searches, calls and programs. The principal of a
    client is the name of its profile; any other principal sees nothing. With `auth`, people have tokens of an
    authorization server, and the scopes of a token give the profile.
    """

    def __init__(self, profiles: Mapping[str, Any] | str | Path, *, auth: Mapping[str, Any] | None = None) -> None:
        """Takes the profiles by name, or the path of a JSON or TOML file with a table `profiles`.

        The table stands beside `mcpServers`, or alone. In a file of Codex or Zed, profiles without a token are
        its own.

        Each has `token`, a variable of the environment such as `${SUPPORT_TOKEN}`, or `sha256:` and the 64 hexadecimal
        digits of the token's SHA-256; `tools`, names or patterns of the tools that the client sees, such as
        `issues/*`; and perhaps `excludeTools`, which it does not see, and `limits` of all its calls together, such as
        `{"rate": "60/min", "concurrency": 4}`. A profile has `code_execution`, `search_tools` and `read_result` too,
        where a server has them, unless it excludes them.

        `auth` is the table of an authorization server, or stands in the file: `issuer`, its identifier; `audience`, the
        URL of this server, for which its tokens must be; and `scopes`, the profile of each scope. The first scope of
        the table that a token has gives its client that profile and no other. The principal of such a client is the
        profile, a colon and the subject of the token, and its tenant is the issuer. A profile that a scope gives needs
        no `token`.

        Raises:
            ConfigurationError: A profile or `auth` cannot be used, or two profiles have the same token.
        """
        self._profiles, self.issuer = _read(profiles, auth)
        """The authorization server of the clients; None if each has a token of its file."""
        self._tokens: IssuerTokens | None = None
        self.revision = 0
        """A number that grows with each `update`. Clients of a `ToolServer` hear of it."""

    def __len__(self) -> int:
        return len(self._profiles)

    def update(self, profiles: Mapping[str, Any] | str | Path, *, auth: Mapping[str, Any] | None = None) -> None:
        """Replaces all profiles, and what scopes give. They are in force at the next request.

        Raises:
            ConfigurationError: As above, or `auth` has another issuer or audience: a server tells clients of both when
                it starts. All profiles stay as they were.
        """
        read, issuer = _read(profiles, auth)
        if _told(issuer) != _told(self.issuer):
            raise ConfigurationError(f"{AUTH} has another issuer or audience now: restart the server to use it")
        self._profiles, self.issuer = read, issuer
        self.revision += 1

    def sees(self, tool: str, caller: Caller) -> bool:
        """True if the caller's profile has the tool. It is a `visible` of `ToolRegistry`."""
        profile = self._profile_of(caller)
        return profile is not None and is_named(tool, (*WAYS, *profile.tools)) and not is_named(tool, profile.excluded)

    def patterns(self) -> list[tuple[str, str]]:
        """Returns each name or pattern of tools, after the key under which it is written."""
        return [
            (f"{PROFILES}.{name}.{key}", pattern)
            for name, profile in self._profiles.items()
            for key, patterns in (("tools", profile.tools), ("excludeTools", profile.excluded))
            for pattern in patterns
        ]

    def limits_of(self, caller: Caller) -> CallLimits | None:
        """Returns the limits of a client's calls, which `toolwire serve` applies; None without any."""
        profile = self._profile_of(caller)
        return None if profile is None else profile.limits

    async def verify_token(self, token: str) -> AccessToken | None:
        """Returns the access of the profile with this token, or None. It is a `token_verifier` of `ToolServer`."""
        from mcp.server.auth.provider import AccessToken

        # The middleware decodes headers as Latin-1. Each token is compared, in constant time.
        given = hashlib.sha256(token.encode("latin-1", "replace")).digest()
        found = [
            name
            for name, profile in self._profiles.items()
            if profile.token is not None and hmac.compare_digest(given, profile.token)
        ]
        if found:
            return AccessToken(token=token, client_id=found[0], scopes=[])
        return None if self.issuer is None else await self._verify_issued(token, self.issuer)

    async def _verify_issued(self, token: str, issuer: Issuer) -> AccessToken | None:
        from toolwire.gateway.profiles.issuer_tokens import IssuerTokens

        if self._tokens is None:
            self._tokens = IssuerTokens(issuer.url)
        return await self._tokens.verify(token, issuer)

    def _profile_of(self, caller: Caller) -> _Profile | None:
        """Returns the profile of a caller: of the client with its token, or of a person with a token of the issuer."""
        if not caller.tenant:
            return self._profiles.get(caller.principal)
        name, mark, _ = caller.principal.partition(":")
        is_issued = self.issuer is not None and caller.tenant == self.issuer.url and bool(mark)
        # What scopes give may have changed since the token was checked.
        if not is_issued or self.issuer is None or name not in self.issuer.scopes.values():
            return None
        return self._profiles.get(name)


def _told(issuer: Issuer | None) -> tuple[str, str] | None:
    """Returns what clients are told of an issuer."""
    return None if issuer is None else (issuer.url, issuer.audience)


def _read(
    profiles: Mapping[str, Any] | str | Path, auth: Mapping[str, Any] | None
) -> tuple[dict[str, _Profile], Issuer | None]:
    """Returns the profiles by name, and the issuer."""
    table, where, given, auth_where = _tables(profiles, auth)
    if not isinstance(table, Mapping):
        raise ConfigurationError(f"{where}: write a table such as {{'support': {{'token': '${{NAME}}', 'tools': []}}}}")
    entries = cast("Mapping[str, Any]", table)
    issuer = None if given is None else read_issuer(given, entries.keys(), auth_where)
    by_scope = () if issuer is None else tuple(issuer.scopes.values())
    read = {name: _profile(name, entry, f"{where}.{name}", name in by_scope) for name, entry in entries.items()}
    owners: dict[bytes, str] = {}
    for name, profile in read.items():
        if profile.token is None:
            continue
        if profile.token in owners:
            raise ConfigurationError(
                f"{where}.{name}.token is that of {owners[profile.token]!r} too: give each its own"
            )
        owners[profile.token] = name
    return read, issuer


def _tables(profiles: Mapping[str, Any] | str | Path, auth: object) -> tuple[object, str, object, str]:
    """Returns the profiles and the place where they stand, and the same of `auth`."""
    if not isinstance(profiles, str | Path):
        return profiles, PROFILES, auth, AUTH
    content = content_of(profiles, str(profiles))
    # A file whose table of servers is misspelt is refused as a whole: its profiles must not be in force alone.
    _, key = servers_in(content, str(profiles))
    if may_have_other_profiles(key) and _are_of_client(content):
        return {}, f"{profiles}: {PROFILES}", auth, f"{profiles}: {AUTH}"
    _refuse_misspelt(content, str(profiles))
    if PROFILES in content and not content[PROFILES]:
        raise ConfigurationError(f"{profiles}: {PROFILES} is empty: give each client one, or leave the table out")
    found = content.get(AUTH, auth)
    return content.get(PROFILES, {}), f"{profiles}: {PROFILES}", found, f"{profiles}: {AUTH}"


def _are_of_client(content: Mapping[str, Any]) -> bool:
    """Returns whether the profiles of a file are settings of Codex or Zed, such as the model, and none of a gateway."""
    found = content.get(PROFILES, {})
    profiles = cast("Mapping[str, Any]", found).values() if isinstance(found, Mapping) else ()
    return AUTH not in content and not any("token" in one for one in profiles if isinstance(one, Mapping))


def _refuse_misspelt(content: Mapping[str, Any], where: str) -> None:
    """Refuses a key that looks like that of profiles: without them every client would have all tools.

    Raises:
        ConfigurationError: A key is misspelt.
    """
    for key in content:
        meant = {"profile": PROFILES, "auth": AUTH}.get(key.lower().removesuffix("s"))
        if meant is not None and key != meant:
            raise ConfigurationError(f"{where}: {key} is not known: write {meant}")


def _profile(name: str, entry: Any, where: str, is_by_scope: bool) -> _Profile:
    needed = {"tools"} if is_by_scope else {"token", "tools"}
    if not name.strip() or not isinstance(entry, Mapping) or not needed <= set(cast("Any", entry)):
        needs = " and ".join(f"'{key}'" for key in sorted(needed))
        raise ConfigurationError(f"{where}: write a name, and its {needs}")
    written = dict(cast("Mapping[str, Any]", entry))
    if unknown := sorted(map(str, written.keys() - _KEYS)):
        raise ConfigurationError(f"{where}.{unknown[0]} is not known: write {', '.join(sorted(_KEYS))}")
    return _Profile(
        token=_digest(written["token"], f"{where}.token") if "token" in written else None,
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

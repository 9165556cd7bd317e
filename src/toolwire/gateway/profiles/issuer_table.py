"""The table `auth` of a file: the issuer of the tokens of a server's clients, and the profile of each scope."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any, cast
from urllib.parse import urlsplit

from toolwire.mcp.oauth.authorization import is_private
from toolwire.vocabulary.errors import ConfigurationError

_KEYS = ("issuer", "audience", "scopes")
_SCOPE = re.compile(r"[\x21\x23-\x5b\x5d-\x7e]+")
"""The characters of a scope (RFC 6749)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Issuer:
    """An authorization server, and what its tokens give.

    Attributes:
        url: Its identifier, as its metadata and its tokens write it.
        audience: The URL of this server, which a token must be for.
        scopes: The profile of each scope. The first scope here that a token has counts.
    """

    url: str
    audience: str
    scopes: Mapping[str, str]

    def profile_for(self, scopes: Collection[str]) -> str | None:
        """Returns the profile of a token with these scopes; None if none of them gives one."""
        return next((profile for scope, profile in self.scopes.items() if scope in scopes), None)


def read_issuer(given: object, profiles: Collection[str], where: str) -> Issuer:
    """Returns the issuer of a table. `profiles` are the names that its scopes may give.

    Raises:
        ConfigurationError: The table cannot be used. The message begins with the place.
    """
    table = _table_of(given, where, "{'issuer': 'https://...', 'audience': 'https://.../mcp', 'scopes': {...}}")
    for key in table:
        if key not in _KEYS:
            raise ConfigurationError(f"{where}.{key} is not known: write {', '.join(_KEYS)}")
    scopes = _table_of(table.get("scopes"), f"{where}.scopes", "{'mcp:read': 'readers'}, from scopes to profiles")
    if not scopes:
        raise ConfigurationError(f"{where}.scopes is empty: write the scope of each profile")
    for scope, profile in scopes.items():
        _check_scope(scope, profile, profiles, f"{where}.scopes.{scope}")
    return Issuer(url=_url(table, "issuer", where), audience=_url(table, "audience", where), scopes=scopes)


def _table_of(given: object, where: str, example: str) -> dict[str, Any]:
    if not isinstance(given, Mapping):
        raise ConfigurationError(f"{where}: write a table such as {example}")
    return dict(cast("Mapping[str, Any]", given))


def _check_scope(scope: str, profile: object, profiles: Collection[str], where: str) -> None:
    if not _SCOPE.fullmatch(scope):
        raise ConfigurationError(f"{where}: {scope!r:.80} is not a scope: write ASCII characters without blanks")
    if not isinstance(profile, str) or profile not in profiles:
        known = f"write one of {', '.join(profiles)}" if profiles else "write a table of profiles"
        raise ConfigurationError(f"{where}: there is no profile {profile!r:.80}: {known}")
    if ":" in profile:
        # It stands before the subject of a token, with a colon between them.
        raise ConfigurationError(f"{where}: the name of the profile {profile!r:.80} has a colon: rename it")


def _url(table: Mapping[str, Any], key: str, where: str) -> str:
    url = table.get(key)
    if not isinstance(url, str) or not url:
        raise ConfigurationError(f"{where}.{key}: write the URL, such as https://login.example.com")
    try:
        parts = urlsplit(url)
        is_usable = is_private(url, url) and bool(parts.hostname) and (parts.port or 1) > 0
    except ValueError:
        is_usable = False
    if not is_usable or "#" in url or "?" in url or "@" in url or not url.isprintable():
        raise ConfigurationError(
            f"{where}.{key}: {url!r:.200} is not a URL for tokens: write https://, without a query, or a server of "
            "this machine"
        )
    return url

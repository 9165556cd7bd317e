"""The keys of an authorization server: fetched when a token needs them, kept for a while, and fetched anew."""

from __future__ import annotations

import asyncio
import json
import logging
import threading
import time
from collections.abc import Mapping
from concurrent.futures import Future
from typing import Any, cast
from urllib.parse import urlsplit

import httpx2
import jwt

from toolwire.gateway.profiles.token_refusal import RETRY_AFTER_S
from toolwire.mcp.oauth.authorization import is_private
from toolwire.mcp.oauth.authorization_network import AuthorizationNetwork
from toolwire.mcp.oauth.granting import AuthorizationFailed

KEYS_S = 300.0
"""Seconds after which the keys are fetched again, beside the requests: issuers take keys away within hours."""

KEPT_S = 3_600.0
"""Seconds for which keys count while their issuer cannot be reached. A key that was taken away lives no longer."""

FETCH_S = 10.0
"""Seconds for the metadata and the keys together. Issuers answer in less than one."""

DOCUMENT_BYTES = 256 * 1024
"""Bytes of the metadata, and of the keys. A key has some 400, and metadata a few thousand."""

_DOCUMENTS = ("{origin}/.well-known/{name}{path}", "{origin}{path}/.well-known/{name}")
_NAMES = ("oauth-authorization-server", "openid-configuration")
_LOG = logging.getLogger("toolwire.gateway")


class NoKeys(Exception):
    """The keys of the issuer are not known. The message says why."""


class IssuerKeys:
    """The keys of one issuer. Usable from several threads and event loops."""

    def __init__(self, issuer: str) -> None:
        self._issuer = issuer
        self._lock = threading.Lock()
        self._keys: Mapping[str, jwt.PyJWK] = {}
        self._read_at = self._tried_at = -KEPT_S
        self._why = ""
        self._under_way: Future[None] | None = None

    async def find(self, key_id: str) -> jwt.PyJWK | None:
        """Returns the key with this id; None if the issuer has no such key.

        Raises:
            NoKeys: The issuer cannot be reached, or its keys cannot be used.
        """
        age = time.monotonic() - self._read_at
        if key_id not in self._keys or age >= KEPT_S:
            await asyncio.shield(asyncio.wrap_future(self._fetch_soon()))
        elif age >= KEYS_S:
            self._fetch_soon()
        if time.monotonic() - self._read_at >= KEPT_S:
            raise NoKeys(self._why)
        return self._keys.get(key_id)

    def _fetch_soon(self) -> Future[None]:
        """Starts to fetch the keys, unless this is under way or was tried just before.

        Anyone may send tokens with unknown keys, and each would ask the issuer.
        """
        with self._lock:
            if self._under_way is not None:
                return self._under_way
            under_way = Future[None]()
            if time.monotonic() - self._tried_at < RETRY_AFTER_S:
                under_way.set_result(None)
                return under_way
            self._under_way = under_way
        # A loop of its own: that of the request may end before, and others wait for the same keys.
        threading.Thread(target=self._fetch, args=(under_way,), name="toolwire-issuer", daemon=True).start()
        return under_way

    def _fetch(self, under_way: Future[None]) -> None:
        try:
            keys = asyncio.run(_keys_of(self._issuer))
        except NoKeys as error:
            self._why = str(error)
            _LOG.warning("%s", error)
        except Exception:  # noqa: BLE001 - no request may wait for ever
            self._why = f"the keys of the issuer {self._issuer} cannot be read"
            _LOG.exception("%s", self._why)
        else:
            self._keys, self._read_at = keys, time.monotonic()
        with self._lock:
            self._tried_at, self._under_way = time.monotonic(), None
        under_way.set_result(None)


async def _keys_of(issuer: str) -> dict[str, jwt.PyJWK]:
    try:
        async with asyncio.timeout(FETCH_S), httpx2.AsyncClient(transport=AuthorizationNetwork(issuer)) as http:
            return await _read_keys(http, issuer, await _keys_url(http, issuer))
    except TimeoutError:
        raise NoKeys(f"the issuer {issuer} does not answer within {FETCH_S:g} s") from None
    except (httpx2.HTTPError, httpx2.InvalidURL, AuthorizationFailed) as error:
        raise NoKeys(f"the issuer {issuer} cannot be reached: {error or type(error).__name__}") from error


async def _keys_url(http: httpx2.AsyncClient, issuer: str) -> str:
    """Returns the URL of the keys, from the metadata of the issuer (RFC 8414, or OpenID Connect Discovery)."""
    parts = urlsplit(issuer)
    origin, path = f"{parts.scheme}://{parts.netloc}", parts.path.rstrip("/")
    places = [place.format(origin=origin, path=path, name=name) for name in _NAMES for place in _DOCUMENTS]
    for place in dict.fromkeys(places):
        found = await _document(http, place)
        if found is None:
            continue
        if found.get("issuer") != issuer:
            raise NoKeys(f"{place} is of the issuer {found.get('issuer')!r:.200}, and not of {issuer!r}")
        url = found.get("jwks_uri")
        if not isinstance(url, str) or not is_private(url, issuer):
            raise NoKeys(f"{place} names no keys at https://: jwks_uri is {url!r:.200}")
        return url
    raise NoKeys(f"the issuer {issuer} has no metadata: not at {', '.join(dict.fromkeys(places))}")


async def _read_keys(http: httpx2.AsyncClient, issuer: str, url: str) -> dict[str, jwt.PyJWK]:
    document = await _document(http, url)
    if document is None:
        raise NoKeys(f"the issuer {issuer} has no keys at {url}")
    try:
        found = jwt.PyJWKSet.from_dict(document).keys
    except (jwt.PyJWTError, ValueError, TypeError, AttributeError, KeyError) as error:
        raise NoKeys(f"the keys of the issuer {issuer} at {url} cannot be used: {error}") from error
    # A shared secret must not check signatures: a public text could be taken for it.
    keys = [key for key in found if key.key_type != "oct" and key.public_key_use in (None, "sig")]
    return {str(key.key_id): key for key in keys if key.key_id}


async def _document(http: httpx2.AsyncClient, url: str) -> dict[str, Any] | None:
    """Returns the JSON object at the URL; None for any other answer.

    Raises:
        NoKeys: The answer is too long, or is an error of the server.
    """
    async with http.stream("GET", url, headers={"Accept": "application/json"}, follow_redirects=False) as answer:
        if answer.status_code >= 500:
            raise NoKeys(f"the issuer cannot be reached: {url} answers {answer.status_code}")
        if answer.status_code != 200:
            return None
        body = bytearray()
        async for part in answer.aiter_bytes():
            body += part
            if len(body) > DOCUMENT_BYTES:
                raise NoKeys(f"{url} has more than {DOCUMENT_BYTES:,} bytes")
    try:
        found = json.loads(body)
    except (ValueError, RecursionError):
        return None
    return cast("dict[str, Any]", found) if isinstance(found, dict) else None

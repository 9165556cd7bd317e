"""Verifies the tokens of an authorization server: JWTs that it signed, for this server (RFC 9068)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

import jwt
from mcp.server.auth.provider import AccessToken

from toolwire.gateway.profiles.issuer_keys import IssuerKeys, NoKeys
from toolwire.gateway.profiles.issuer_table import Issuer
from toolwire.gateway.profiles.token_refusal import UNAVAILABLE, TokenRefused

ALGORITHMS = ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA")
"""Signatures by a private key alone. With HS256, everybody who knows the public key could sign."""

LEEWAY_S = 30
"""Seconds by which the clocks of the issuer and this machine may differ."""

NAME_CHARACTERS = 255
"""Characters of a subject or a client, as OpenID Connect bounds a subject."""

_NEEDED = ("exp", "iss", "aud", "sub")
_MALFORMED = (ValueError, TypeError, OverflowError, RecursionError)
"""The errors of a malformed token, beside those of its library."""


class IssuerTokens:
    """The tokens of one issuer."""

    def __init__(self, url: str) -> None:
        self._keys = IssuerKeys(url)

    async def verify(self, token: str, issuer: Issuer) -> AccessToken | None:
        """Returns the access that a token gives; None for a text that is no JWT.

        Its subject is the profile and the person, so that one person with two profiles is two callers.

        Raises:
            TokenRefused: The token is not valid here, gives no profile, or cannot be checked now.
        """
        try:
            key_id = jwt.get_unverified_header(token).get("kid")
        except (jwt.PyJWTError, *_MALFORMED):
            return None
        claims = await self._claims(token, key_id, issuer)
        scopes = _scopes_of(claims)
        profile = issuer.profile_for(scopes)
        if profile is None:
            raise TokenRefused(403, "insufficient_scope", f"it needs one of the scopes {', '.join(issuer.scopes)}")
        subject, client = claims["sub"], claims.get("client_id") or claims.get("azp") or ""
        if not subject or not _is_name(subject) or not _is_name(client):
            raise _invalid("its subject or its client is no name")
        return AccessToken(
            token=token,
            client_id=client,
            scopes=sorted(scopes),
            expires_at=int(claims["exp"]) + LEEWAY_S,
            resource=issuer.audience,
            subject=f"{profile}:{subject}",
            claims={"iss": issuer.url},
        )

    async def _claims(self, token: str, key_id: object, issuer: Issuer) -> Mapping[str, Any]:
        if not isinstance(key_id, str):
            raise _invalid("it names no key of its issuer")
        try:
            key = await self._keys.find(key_id)
        except NoKeys as error:
            raise TokenRefused(UNAVAILABLE, "temporarily_unavailable", str(error)) from error
        if key is None:
            raise _invalid("its issuer has no such key")
        try:
            return jwt.decode(
                token,
                key,
                algorithms=ALGORITHMS,
                audience=issuer.audience,
                issuer=issuer.url,
                leeway=LEEWAY_S,
                options={"require": list(_NEEDED)},
            )
        except (jwt.PyJWTError, *_MALFORMED) as error:
            raise _invalid(_why(error)) from error


def _invalid(why: str) -> TokenRefused:
    return TokenRefused(401, "invalid_token", f"the token is not valid here: {why}")


def _why(error: Exception) -> str:
    match error:
        case jwt.ExpiredSignatureError():
            return "it has expired"
        case jwt.ImmatureSignatureError():
            return "its time has not come"
        case jwt.InvalidAudienceError():
            return "it is for another audience"
        case jwt.InvalidIssuerError():
            return "it is of another issuer"
        case jwt.MissingRequiredClaimError():
            return f"it has no {error.claim}"
        case _:
            return "its signature or its form is wrong"


def _is_name(given: object) -> bool:
    return isinstance(given, str) and len(given) <= NAME_CHARACTERS and given.isprintable()


def _scopes_of(claims: Mapping[str, Any]) -> set[str]:
    """Returns the scopes of a token. Some issuers write them as `scp`, and some as a list."""
    found: set[str] = set()
    for key in ("scope", "scp"):
        given: Any = claims.get(key)
        texts = given.split(" ") if isinstance(given, str) else given
        if isinstance(texts, list):
            found |= {one for one in cast("list[Any]", texts) if isinstance(one, str)}
    return found

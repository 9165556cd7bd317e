"""Checks each answer of an authorization server before the SDK reads it: metadata, registrations and tokens.

The SDK takes the fields as they are: a number may be too large for a clock, and a token may have characters that no
header carries.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any, cast

import httpx2
from mcp.shared.auth import (
    OAuthClientInformationFull,
    OAuthClientMetadata,
    OAuthMetadata,
    OAuthToken,
    ProtectedResourceMetadata,
)
from pydantic import AnyUrl, BaseModel, ValidationError

from toolwire.mcp.server_log import printable

URL_CHARACTERS = 2_048
"""Maximum characters of a URL: what browsers and servers agree on."""
NUMBER_LIMIT = 2**63
"""Numbers are below it: a time of more seconds fits no clock."""

_CHARACTERS = 80
"""Characters of a wrong value that a message shows."""
_HEADER_TEXT = re.compile(r"[\x21-\x7e]+")
"""The characters of a token that a header carries (RFC 6750)."""
_ENDPOINTS = frozenset({"authorization_endpoint", "token_endpoint", "registration_endpoint"})
_DOCUMENTS: tuple[type[BaseModel], ...] = (ProtectedResourceMetadata, OAuthMetadata)


class WrongAnswer(Exception):
    """A field of an answer cannot be used. The message names it."""


def check_answer(request: httpx2.Request, response: httpx2.Response) -> httpx2.Response:
    """Returns the answer to a request. The body of a failure is text in UTF-8, because the SDK shows it.

    Another document is returned unchecked: the SDK looks for the right one elsewhere, or refuses it. A registration
    has the addresses that were registered: the next login listens on their port, which no server chooses.

    Raises:
        WrongAnswer: A field cannot be used.
    """
    if response.status_code not in (200, 201):
        return _with_text(response, response.content.decode("utf-8", "replace"))
    for kind in _kinds(request):
        try:
            document = kind.model_validate_json(response.content)
        except ValidationError:
            continue
        for name, value in document:
            for item in cast("list[Any]", value) if isinstance(value, list) else [value]:
                _check_field(name, item)
        if isinstance(document, OAuthClientInformationFull):
            document.redirect_uris = OAuthClientMetadata.model_validate_json(request.content).redirect_uris
            return _with_text(response, document.model_dump_json(exclude_none=True))
    return response


def _kinds(request: httpx2.Request) -> Iterable[type[BaseModel]]:
    if request.method == "GET":
        return _DOCUMENTS
    is_form = "urlencoded" in request.headers.get("content-type", "")
    return (OAuthToken,) if is_form else (OAuthClientInformationFull,)


def _with_text(response: httpx2.Response, text: str) -> httpx2.Response:
    """Returns the answer with another body, and the headers that the SDK reads."""
    headers = {name: response.headers[name] for name in ("location", "www-authenticate") if name in response.headers}
    return httpx2.Response(response.status_code, headers=headers, text=text, request=response.request)


def _check_field(name: str, value: Any) -> None:
    if why := _why_not(name, value):
        # A text may be a secret.
        shown = "" if isinstance(value, str) else f": {printable(str(value)[:_CHARACTERS])}"
        raise WrongAnswer(f"its {name} {why}{shown}")


def _why_not(name: str, value: Any) -> str:
    match value:
        case AnyUrl() if len(str(value)) > URL_CHARACTERS:
            return f"has more than {URL_CHARACTERS:,} characters"
        case AnyUrl() if name in _ENDPOINTS and value.fragment is not None:
            return "has a fragment"
        case int() if abs(value) >= NUMBER_LIMIT:
            return "is too large a number"
        case str() if name == "access_token" and not _HEADER_TEXT.fullmatch(value):
            return "has characters that no header carries"
        case _:
            return ""

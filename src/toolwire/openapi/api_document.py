"""An OpenAPI document: read from a dict, a file or a URL, and checked before a tool is made of it."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import httpx2
import yaml

from toolwire.vocabulary.errors import ConfigurationError, DefinitionError

DOCUMENT_LIMIT_BYTES = 32 * 1024 * 1024
"""Maximum bytes of a document: 32 MiB. The largest public ones have 10 to 15."""
NODES_LIMIT = 3_000_000
"""Maximum values in a document. A short YAML text can name one list so often that it fills the memory."""
DEPTH_LIMIT = 100
"""Maximum nesting of a document. The deepest public ones have 30 to 40 levels."""
FETCH_TIMEOUT_S = 30.0
"""Maximum seconds to fetch a document, the time of one request of a tool."""
REFERENCE_DATA = frozenset({"example", "examples", "default", "enum", "const"})
"""Keywords whose values are data, so that a `$ref` in them refers to nothing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ApiDocument:
    """A document that says that it is OpenAPI 3."""

    content: dict[str, Any]
    """The document in JSON types. It belongs to this object."""
    label: str
    """The document in the texts of errors, such as "the OpenAPI document shop.yaml"."""
    url: httpx2.URL | None
    """The URL that the owner wrote; None for a dict or a file."""


def read_document(source: object) -> ApiDocument:
    """Reads a document from a dict, the path of a JSON or YAML file, or an http(s) URL. Blocks while it is fetched.

    Raises:
        ConfigurationError: It cannot be read, or it is too large.
        DefinitionError: It is not an OpenAPI 3 document.
    """
    url = None
    if isinstance(source, Mapping):
        label, content = "the OpenAPI document", cast("object", dict(cast("Mapping[Any, Any]", source)))
    elif isinstance(source, str) and source.lower().startswith(("http://", "https://")):
        label = f"the OpenAPI document {source!r:.200}"
        url = _document_url(source, label)
        content = _parse(_fetch(url, label), label)
    elif isinstance(source, str | Path):
        label = f"the OpenAPI document {str(source)!r:.200}"
        content = _parse(_read_file(Path(source), label), label)
    else:
        raise ConfigurationError(
            f"register_openapi({source!r:.80}): give an OpenAPI document as a dict, a path or an http(s) URL"
        )
    return ApiDocument(content=_check(_in_json_types(content, label), label), label=label, url=url)


def _read_file(path: Path, label: str) -> bytes:
    try:
        with path.open("rb") as file:
            text = file.read(DOCUMENT_LIMIT_BYTES + 1)
    except OSError as error:
        raise ConfigurationError(f"{label} cannot be read: {error.strerror or error}") from error
    if len(text) > DOCUMENT_LIMIT_BYTES:
        raise _too_long(label)
    return text


def _too_long(label: str) -> ConfigurationError:
    return ConfigurationError(f"{label} has more than {DOCUMENT_LIMIT_BYTES:,} bytes: give one with fewer operations")


def _document_url(source: str, label: str) -> httpx2.URL:
    try:
        url = httpx2.URL(source)
    except (httpx2.InvalidURL, UnicodeError) as error:
        raise ConfigurationError(f"{label} is not a URL: {error}") from error
    if not url.host or url.userinfo:
        raise ConfigurationError(
            f"{label}: write the URL with a host, and without a user name. If it needs a password, fetch it yourself "
            "and give the document as a dict"
        )
    return url


def _fetch(url: httpx2.URL, label: str) -> bytes:
    """Fetches the document. Redirects are not followed, because the URL says which server its calls may go to."""
    ends_at, text = time.monotonic() + FETCH_TIMEOUT_S, bytearray()
    try:
        with (
            httpx2.Client(timeout=FETCH_TIMEOUT_S) as client,
            client.stream("GET", url, headers={"Accept": "application/json, application/yaml;q=0.9, */*;q=0.5"}) as got,
        ):
            if got.is_redirect:
                to = got.headers.get("location", "")
                raise ConfigurationError(f"{label} is somewhere else: give the URL {to!r:.200}")
            if not got.is_success:
                raise ConfigurationError(f"{label} cannot be fetched: its server answered {got.status_code}")
            for part in got.iter_bytes():
                text += part
                if len(text) > DOCUMENT_LIMIT_BYTES:
                    raise _too_long(label)
                if time.monotonic() > ends_at:
                    raise httpx2.ReadTimeout(f"no whole answer within {FETCH_TIMEOUT_S:g} seconds")
    except (httpx2.HTTPError, httpx2.InvalidURL) as error:
        raise ConfigurationError(f"{label} cannot be fetched: {error or type(error).__name__}") from error
    return bytes(text)


def _parse(text: bytes, label: str) -> object:
    """Parses JSON or YAML."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        if text.lstrip()[:1] == b"{" and not isinstance(error, UnicodeError):
            raise DefinitionError(f"{label} is not JSON: {error}") from error
    if text.lstrip()[:1] == b"<":
        raise DefinitionError(
            f"{label} is HTML or XML, such as the page of a login: give the JSON or YAML document itself"
        )
    try:
        # The loader is a safe one; the fast one is missing where yaml was built without its library.
        return yaml.load(text, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))  # noqa: S506
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        raise DefinitionError(f"{label} is neither JSON nor YAML: {str(error)[:500]}") from error


def _in_json_types(content: object, label: str) -> object:
    """Returns a copy in JSON types: YAML has dates, and numbers as keys."""
    stack, left = [(content, 1)], NODES_LIMIT
    while stack:
        node, depth = stack.pop()
        inner = _children(node)
        left -= len(inner)
        if left < 0 or depth > DEPTH_LIMIT:
            limit = f"{NODES_LIMIT:,} values" if left < 0 else f"{DEPTH_LIMIT} levels"
            raise DefinitionError(f"{label} has more than {limit}: no real one has so many")
        stack += [(child, depth + 1) for child in inner]
    try:
        return json.loads(json.dumps(content, default=str))
    except (TypeError, ValueError) as error:
        raise DefinitionError(f"{label} cannot be written as JSON: {error}") from error


def _children(node: object) -> list[object]:
    if isinstance(node, dict):
        return list(cast("dict[Any, object]", node).values())
    return cast("list[object]", node) if isinstance(node, list) else []


def _check(content: object, label: str) -> dict[str, Any]:
    if not isinstance(content, dict):
        raise DefinitionError(f"{label} is not an OpenAPI document: it must be an object with the key 'openapi'")
    document = cast("dict[str, Any]", content)
    if "swagger" in document:
        raise DefinitionError(
            f"{label} is Swagger {document['swagger']!r:.20}, and OpenAPI 3 is read: convert it, for example with "
            "`npx swagger2openapi FILE` or at https://editor.swagger.io"
        )
    version = document.get("openapi")
    if not isinstance(version, str) or not version.startswith("3."):
        is_what = (
            f"its key 'openapi' is {version!r:.40}, not '3.1.0'" if "openapi" in document else "it has no key 'openapi'"
        )
        raise DefinitionError(f"{label} is not an OpenAPI 3 document: {is_what}")
    paths = document.get("paths", {})
    if not isinstance(paths, dict):
        raise DefinitionError(f"{label}: paths must be an object, not {paths!r:.80}")
    for path, item in cast("dict[str, Any]", paths).items():
        if not path.startswith("/") and not path.startswith("x-"):
            raise DefinitionError(f"{label}: paths: {path!r:.80} must begin with '/'")
        if not isinstance(item, dict) and not path.startswith("x-"):
            raise DefinitionError(f"{label}: paths.{path:.80} must be an object, not {item!r:.80}")
    return document

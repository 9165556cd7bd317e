"""More than a thousand tools of real services, made at test time from their installed SDKs; no copy is kept here.

Google's discovery documents and Slack's methods are described in English, Tencent Cloud's in Chinese.
"""

from __future__ import annotations

import ast
import inspect
import json
import re
from collections.abc import Iterator, Mapping
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from toolwire.definition.from_schema import from_schema
from toolwire.definition.tool import Tool

GOOGLE = (
    *("admin.directory_v1", "analyticsdata.v1beta", "blogger.v3", "books.v1", "calendar.v3", "chat.v1"),
    *("classroom.v1", "customsearch.v1", "dns.v1", "docs.v1", "drive.v3", "fcm.v1", "fitness.v1", "forms.v1"),
    *("gmail.v1", "keep.v1", "meet.v2", "pagespeedonline.v5", "people.v1", "places.v1", "safebrowsing.v4"),
    *("script.v1", "searchconsole.v1", "secretmanager.v1", "sheets.v4", "slides.v1", "storage.v1", "tasks.v1"),
    *("texttospeech.v1", "translate.v3", "youtube.v3", "youtubeAnalytics.v2"),
)
"""Services that many people use, a document of each."""

TENCENT = (*("asr", "billing", "cvm", "dnspod", "lighthouse", "nlp", "ocr", "ses", "sms", "ssl", "tmt", "trtc", "tts"),)
"""Products, a package of each."""

BODY_DEPTH = 2
"""Levels of a request's body that a schema spells out, as importers of such APIs do."""


@cache
def service_tools() -> tuple[Tool, ...]:
    """All of them, known by their schemas."""
    return (*google_tools(), *slack_tools(), *tencent_tools())


@cache
def google_tools() -> tuple[Tool, ...]:
    """Each method of each document, under its id."""
    return tuple(tool for api in GOOGLE for tool in _google(api))


@cache
def slack_tools() -> tuple[Tool, ...]:
    """Each method of Slack's client."""
    from slack_sdk import WebClient

    methods = inspect.getmembers(WebClient, inspect.isfunction)
    return tuple(_slack(name, method) for name, method in methods if _is_slack_method(name, method))


@cache
def tencent_tools() -> tuple[Tool, ...]:
    """Each action of each product, in its newest version."""
    return tuple(tool for product in TENCENT for tool in _tencent(product))


def _google(api: str) -> Iterator[Tool]:
    text = (_folder("googleapiclient") / f"discovery_cache/documents/{api}.json").read_text("utf-8")
    document = json.loads(text)
    schemas = document.get("schemas", {})
    for method in _methods(document):
        yield from_schema(method["id"], method.get("description", ""), _google_schema(method, schemas))


def _methods(resource: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    yield from resource.get("methods", {}).values()
    for inner in resource.get("resources", {}).values():
        yield from _methods(inner)


def _google_schema(method: Mapping[str, Any], schemas: Mapping[str, Any]) -> dict[str, Any]:
    parameters: dict[str, Any] = method.get("parameters", {})
    properties = {name: _google_node(node, schemas, BODY_DEPTH) for name, node in parameters.items()}
    if "request" in method:
        properties["body"] = _google_node(method["request"], schemas, BODY_DEPTH)
    required = [name for name, node in parameters.items() if node.get("required")]
    return {"type": "object", "properties": properties, "required": required}


def _google_node(node: Mapping[str, Any], schemas: Mapping[str, Any], depth: int) -> dict[str, Any]:
    whole = {**schemas.get(node.get("$ref", ""), {}), **node}
    kind = whole.get("type", "object")
    found: dict[str, Any] = {} if kind == "any" else {"type": kind}
    found |= {key: whole[key] for key in ("description", "enum") if key in whole}
    if node.get("repeated"):
        return {"type": "array", "items": found}
    if "items" in whole:
        found["items"] = _google_node(whole["items"], schemas, depth)
    if kind == "object" and depth and "properties" in whole:
        fields = {name: inner for name, inner in whole["properties"].items() if not inner.get("readOnly")}
        found["properties"] = {name: _google_node(inner, schemas, depth - 1) for name, inner in fields.items()}
    return found


def _is_slack_method(name: str, method: Any) -> bool:
    return not name.startswith("_") and "/reference/methods/" in (inspect.getdoc(method) or "")


def _slack(name: str, method: Any) -> Tool:
    doc = re.sub(r"https?://\S+", "", inspect.getdoc(method) or "").strip()
    taken = [
        parameter
        for parameter in inspect.signature(method).parameters.values()
        if parameter.kind is parameter.KEYWORD_ONLY
    ]
    properties = {parameter.name: _slack_node(str(parameter.annotation)) for parameter in taken}
    required = [parameter.name for parameter in taken if parameter.default is parameter.empty]
    return from_schema(f"slack.{name}", doc, {"type": "object", "properties": properties, "required": required})


def _slack_node(annotation: str) -> dict[str, Any]:
    kinds = {"bool": "boolean", "int": "integer", "float": "number", "Sequence": "array", "List": "array"}
    return {
        "type": next((kind for word, kind in kinds.items() if word in annotation and "str" not in annotation), "string")
    }


def _tencent(product: str) -> Iterator[Tool]:
    folder = max((_folder("tencentcloud") / product).glob("v*"))
    requests = _tencent_requests((folder / "models.py").read_text("utf-8"))
    tree = ast.parse((folder / f"{product}_client.py").read_text("utf-8"))
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef):
            description = _plain((ast.get_docstring(node) or "").partition(":param")[0])
            yield from_schema(f"tencent.{product}.{node.name}", description, requests.get(node.name))


_REQUEST = re.compile(
    r'^class (\w+)Request\(AbstractModel\):.*?def __init__\(self\):\n\s+r"""(.*?)"""', re.DOTALL | re.MULTILINE
)
_PARAMETER = re.compile(r":param _(\w+): (.*?)\n\s+:type \w+: (.*?)\n", re.DOTALL)


def _tencent_requests(source: str) -> dict[str, dict[str, Any]]:
    """The schema of each request. The source is read as text: importing it would compile megabytes."""
    return {
        name: {
            "type": "object",
            "properties": {
                parameter: {**_tencent_node(kind), "description": _plain(description)}
                for parameter, description, kind in _PARAMETER.findall(docstring)
            },
        }
        for name, docstring in _REQUEST.findall(source)
    }


def _tencent_node(kind: str) -> dict[str, Any]:
    if kind.startswith("list of "):
        return {"type": "array", "items": _tencent_node(kind.removeprefix("list of "))}
    kinds = {"str": "string", "int": "integer", "float": "number", "bool": "boolean"}
    return {"type": kinds.get(kind, "object")}


def _plain(text: str) -> str:
    """Without the tags of HTML that these descriptions hold."""
    return re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", text)).strip()


def _folder(package: str) -> Path:
    found = find_spec(package)
    assert found is not None, f"{package} is not installed: run make setup"
    assert found.submodule_search_locations is not None
    return Path(next(iter(found.submodule_search_locations)))

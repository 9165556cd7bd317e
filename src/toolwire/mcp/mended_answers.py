"""Mends answers that the SDK would refuse: a page with one broken tool, and a result that does not say its type."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

from mcp_types import PROTOCOL_VERSION_META_KEY, JSONRPCRequest, JSONRPCResponse, RequestId
from mcp_types.methods import validate_server_result
from mcp_types.version import MODERN_PROTOCOL_VERSIONS
from pydantic import ValidationError

from toolwire.mcp.server_log import ServerLog

_LIST = "tools/list"


class MendedAnswers:
    """The answers of one connection. It sees each request and each answer."""

    def __init__(self, log: ServerLog) -> None:
        self._log = log
        self._version = ""
        self._asked: dict[RequestId, str] = {}
        """The method of each request whose answer is of interest."""

    def sent(self, request: JSONRPCRequest) -> None:
        """Notes a request."""
        if request.method in ("initialize", _LIST):
            self._asked[request.id] = request.method
            meta = (request.params or {}).get("_meta", {})
            self._version = meta.get(PROTOCOL_VERSION_META_KEY, self._version)

    def received(self, answer: JSONRPCResponse) -> None:
        """Takes the broken tools out of the answer if it is a page. A warning names each of them.

        A result of 2026-07-28 without a type is complete, as those of older servers are.
        """
        if self._version in MODERN_PROTOCOL_VERSIONS:
            answer.result.setdefault("resultType", "complete")
        method = self._asked.pop(answer.id, "")
        if method == "initialize":
            self._version = str(answer.result.get("protocolVersion", ""))
        elif method == _LIST and self._fault(answer.result) is not None:
            tools: Any = answer.result.get("tools")
            # A page that is broken in another way is left to the SDK.
            if isinstance(tools, list) and self._fault({**answer.result, "tools": []}) is None:
                found = cast("list[Any]", tools)
                answer.result["tools"] = [tool for tool in found if self._is_usable(tool, answer.result)]

    def _is_usable(self, tool: Any, page: Mapping[str, Any]) -> bool:
        fault = self._fault({**page, "tools": [tool]})
        if fault is None:
            return True
        name = cast("Mapping[str, Any]", tool).get("name") if isinstance(tool, Mapping) else tool
        self._log.warning(f"its tool {name!r:.80} is off, because its definition is broken: {fault}")
        return False

    def _fault(self, page: Mapping[str, Any]) -> str | None:
        """Returns the first fault of the page; None if the SDK takes it."""
        try:
            validate_server_result(_LIST, self._version, page)
        except ValidationError as error:
            first = error.errors(include_url=False, include_context=False, include_input=False)[0]
            return f"{'.'.join(map(str, first['loc']))}: {first['msg']}"
        except (KeyError, ValueError):
            # The SDK does not know the version either.
            return None
        return None

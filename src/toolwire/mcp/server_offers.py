"""The resources, prompts and completion of a server, which a gateway passes on to its own clients.

Each request is a tool that no model sees, so that it takes the path of a call: rules, approvals, limits and the log.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import Future
from typing import TYPE_CHECKING, Any, Literal

from toolwire.definition.from_schema import from_schema
from toolwire.definition.tool import Tool
from toolwire.mcp.values.features import FEATURES, ROOTS, SAMPLE, Feature
from toolwire.vocabulary.errors import CallNotSent
from toolwire.vocabulary.questions import InputRequired
from toolwire.vocabulary.results import ToolResult

if TYPE_CHECKING:
    from toolwire.mcp.connection import Connection
    from toolwire.mcp.offered.listing import OfferKind
    from toolwire.mcp.values.client_requests import ServerRequest
    from toolwire.vocabulary.context import CallContext

READ, GET, COMPLETE = "resources:read", "prompts:get", "completion:complete"
"""The requests, by names like their methods. The tool of a request has the server's name and `/` before it.

With one `/` alone, a rule about `fs/*` is about them too.
"""

Capability = Literal["resources", "prompts", "completions"]

CAPABILITY: Mapping[str, Capability] = {READ: "resources", GET: "prompts", COMPLETE: "completions"}
"""The capability of a server that answers a request."""

_TEXT = {"type": "string"}
_SCHEMAS: Mapping[str, dict[str, Any]] = {
    READ: {"type": "object", "properties": {"uri": _TEXT}, "required": ["uri"]},
    GET: {
        "type": "object",
        "properties": {"name": _TEXT, "arguments": {"type": "object", "additionalProperties": _TEXT}},
        "required": ["name"],
    },
    COMPLETE: {
        "type": "object",
        "properties": {"ref": {"type": "object"}, "argument": {"type": "object"}, "context": {"type": "object"}},
        "required": ["ref", "argument"],
    },
}
_FEATURE_SCHEMAS: Mapping[str, dict[str, Any]] = {
    SAMPLE: {
        "type": "object",
        "properties": {"messages": {"type": "array"}, "maxTokens": {"type": "integer"}},
        "required": ["messages", "maxTokens"],
    },
    ROOTS: {"type": "object", "properties": {}},
}
_DESCRIPTIONS = {
    READ: "Reads a resource of the server.",
    GET: "Gets a prompt of the server.",
    COMPLETE: "Completes an argument of a prompt or a template of the server.",
    SAMPLE: "Lets the server use the model of the client.",
    ROOTS: "Tells the server the roots of the client.",
}


class ServerOffers:
    """What one server has beside tools. Any thread may use it; no method waits for the server."""

    def __init__(self, server: str, connection: Callable[[], Connection]) -> None:
        self.server = server
        """The name of the server."""
        self.is_sanitised = False
        """True if clients behind a gateway get this server's texts as toolwire's own prompts have them."""
        self._connection = connection
        self._changed: list[Callable[[frozenset[OfferKind]], None]] = []
        self._updated: list[Callable[[str], None]] = []
        self.tools: tuple[Tool, ...] = tuple(self._tool(method) for method in _SCHEMAS)
        """The requests as tools: `fs/resources:read`, `fs/prompts:get` and `fs/completion:complete`."""
        self.allowed: frozenset[Feature] = frozenset()
        """The features of clients that the server may use."""
        self.feature_tools: tuple[Tool, ...] = ()
        """The requests for these features as tools: `fs/sampling:create` and `fs/roots:list`."""

    def allow(self, features: Iterable[Feature]) -> None:
        """Lets the server use features of the clients that call it. Call it before the first use."""
        self.allowed = frozenset(features)
        self.feature_tools = tuple(self._feature_tool(FEATURES[feature]) for feature in sorted(self.allowed))

    def serves(self, capability: Capability) -> bool:
        """True if the server had the capability at its last connection."""
        return getattr(self._connection().capabilities, capability, None) is not None

    def list_offers(self, kind: OfferKind) -> Future[tuple[Any, ...]]:
        """Returns a list of the server. It is the last known one while the server cannot be reached."""
        try:
            return self._connection().list_offers(kind)
        except RuntimeError:
            # The connection was closed at this moment.
            ended: Future[tuple[Any, ...]] = Future()
            ended.set_result(())
            return ended

    def subscribe(self, uri: str, *, is_wanted: bool) -> Future[None]:
        """Asks for news of a resource, or no longer. The future raises an `MCPError` if the server refuses it."""
        return self._connection().subscribe(uri, is_wanted=is_wanted)

    def watch(self, changed: Callable[[frozenset[OfferKind]], None], updated: Callable[[str], None]) -> None:
        """Calls `changed` with the lists that changed, and `updated` with the URI of a subscribed resource.

        They are called in other threads, and must not block.
        """
        self._changed.append(changed)
        self._updated.append(updated)

    def tell_changed(self, kinds: frozenset[OfferKind]) -> None:
        """Tells the watchers of changed lists."""
        for changed in tuple(self._changed):
            changed(kinds)

    def tell_updated(self, uri: str) -> None:
        """Tells the watchers of a changed resource."""
        for updated in tuple(self._updated):
            updated(uri)

    def _tool(self, method: str) -> Tool:
        def call(context: Any = None, /, **arguments: Any) -> Future[Any]:
            future: Future[Any] = Future()
            self._send(method, arguments, future, context)
            return future

        return self._request_tool(method, _SCHEMAS[method], call)

    def _feature_tool(self, method: str) -> Tool:
        def call(_: Any = None, /, **arguments: Any) -> Future[Any]:
            from toolwire.mcp.sending import LISTENER

            listener = LISTENER.get()
            if listener is not None:
                return listener.send(method, arguments)
            refused: Future[Any] = Future()
            refused.set_result(ToolResult(False, error="this call has no client"))
            return refused

        return self._request_tool(method, _FEATURE_SCHEMAS[method], call)

    def _request_tool(self, method: str, schema: Mapping[str, Any], call: Callable[..., Future[Any]]) -> Tool:
        # A read has no effect, so that it may run again after a crash.
        tool = from_schema(
            f"{self.server}/{method}",
            _DESCRIPTIONS[method],
            schema,
            function=call,
            labels=("untrusted",),
            idempotent="natural",
            is_outside=True,
        )
        tool.asker = self.server
        return tool

    def _send(
        self, method: str, arguments: Mapping[str, Any], future: Future[Any], context: CallContext | None
    ) -> None:
        try:
            self._connection().call(_request_for(method, arguments), _result_of, future, context)
        except RuntimeError:
            future.set_exception(CallNotSent(f"the connection to the MCP server {self.server!r} was closed"))


def _request_for(method: str, arguments: Mapping[str, Any]) -> ServerRequest:
    from toolwire.mcp.values import client_requests as requests

    if method == READ:
        return requests.resource_read(arguments["uri"])
    if method == GET:
        return requests.prompt_get(arguments["name"], arguments.get("arguments"))
    return requests.completion(arguments)


def _result_of(result: Any) -> ToolResult | InputRequired:
    """Returns a result whose data are the SDK's result as JSON. The client reads the data, so the text is short."""
    if isinstance(result, ToolResult | InputRequired):
        return result
    data = result.model_dump(by_alias=True, mode="json", exclude_none=True)
    return ToolResult(True, data, content=[{"type": "text", "text": "The server answered."}])

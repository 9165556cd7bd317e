"""News for the clients that listen by protocol 2026-07-28: for all of them, or for those of one caller."""

from __future__ import annotations

from collections.abc import Callable

from mcp.server.subscriptions import InMemorySubscriptionBus, ServerEvent

from toolwire.vocabulary.calls import Caller

Listener = Callable[[ServerEvent], None]


class CallerBus(InMemorySubscriptionBus):
    """The SDK's bus. It knows the caller of each stream."""

    def __init__(self, caller: Callable[[], Caller]) -> None:
        """`caller` returns the caller of the request that is being answered."""
        super().__init__()
        self._caller = caller
        self._streams: dict[object, tuple[Caller, Listener]] = {}

    def subscribe(self, listener: Listener) -> Callable[[], None]:
        """Adds the stream of the request that is being answered, and returns the function that removes it."""
        stream, remove = object(), super().subscribe(listener)
        self._streams[stream] = (self._caller(), listener)

        def unsubscribe() -> None:
            self._streams.pop(stream, None)
            remove()

        return unsubscribe

    def publish_to(self, caller: Caller, event: ServerEvent) -> None:
        """Gives an event to the streams of one caller."""
        for own, listener in list(self._streams.values()):
            if own == caller:
                listener(event)

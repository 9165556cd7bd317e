"""Places for live programs: a cap, a short queue before it, and a typed refusal beyond. Works for threads and loops."""

from __future__ import annotations

from concurrent.futures import Future

from toolwire.vocabulary.errors import ForOperator
from toolwire.vocabulary.machine.gate import Gate, GateFull
from toolwire.vocabulary.texts.counting import count_of

LIVE_CAP = 32
"""Programs that run at the same time: half of the workers, so that their tools find some too."""
QUEUE_CAP = 64


class Overloaded(ForOperator):
    """Too many programs run or wait already; this one has not been started. A later attempt may succeed."""

    def __init__(self, message: str, *, live: int, waiting: int) -> None:
        super().__init__(message)
        self.live = live
        self.waiting = waiting


class Places:
    """Hands out `live_cap` places. A place is a future, so that a thread and a loop can both wait for it."""

    def __init__(self, live_cap: int = LIVE_CAP, queue_cap: int = QUEUE_CAP) -> None:
        self._gate = Gate(live_cap, queue_limit=queue_cap)

    def take(self) -> Future[None]:
        """Returns a future that is done once there is a place; the caller must `give_back` it afterwards in every case.

        Raises:
            Overloaded: the queue is full.
        """
        try:
            turn = self._gate.enter()
        except GateFull:
            raise self.overload_error() from None
        if turn is not None:
            return turn
        place = Future[None]()
        place.set_result(None)
        return place

    def give_back(self, place: Future[None]) -> None:
        """Frees the place for the next in the queue, or leaves the queue."""
        self._gate.withdraw(place)

    def overload_error(self) -> Overloaded:
        """Returns the error for a full queue, with the present figures."""
        live, waiting = self._gate.inside, self._gate.waiting
        return Overloaded(
            f"{count_of(live, 'program runs', 'programs run')}, "
            f"and {count_of(waiting, 'waits', 'wait')} for a place; try again later",
            live=live,
            waiting=waiting,
        )

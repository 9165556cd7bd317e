"""Follows the log: new rows as they come, of this or another process. One thread of a process reads them for all."""

from __future__ import annotations

import math
import threading
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any, Self, TypeVar

from sqlalchemy import Connection

from toolwire.journal.log.cursor import Cursor, Ends
from toolwire.journal.log.heads import chain_of, last_rows
from toolwire.journal.log.rows import LogFilter, LogRow, newer, unseen
from toolwire.vocabulary.errors import StoreUnavailable

T = TypeVar("T")
Read = Callable[[Callable[[Connection], T]], T]
"""Runs a job on one state of the database."""

FOLLOW_S = 0.25
"""Seconds between two queries for new rows, of this or another process. A person does not notice the delay."""

FOLLOWED_AT_ONCE = 500
"""Rows of a query when a log is followed."""

FEED_LIMIT = 5_000
"""New rows that wait for a follower. A slower one reads them itself later, so that they do not fill the memory."""

BEGIN = Cursor(place=(-math.inf, 0))
"""The cursor of a reader that has seen nothing."""


class Feed:
    """The new rows that wait for one follower. `wake` is called from the reading thread when there are some."""

    def __init__(self, wake: Callable[[], object]) -> None:
        self._wake = wake
        self.rows: deque[LogRow] = deque()
        self.is_cut = False
        """True if rows are missing: the follower was too slow, or the store could not be read."""

    def put(self, rows: Sequence[LogRow]) -> None:
        """Adds rows, or cuts the feed if they are too many."""
        if len(self.rows) + len(rows) > FEED_LIMIT:
            self.is_cut = True
        else:
            self.rows.extend(rows)
        self._wake()

    def cut(self) -> None:
        """Says that rows are missing."""
        self.is_cut = True
        self._wake()


class Tail:
    """The end of the log, read by one thread for all followers of a process while there are any."""

    def __init__(self, read: Read[Any]) -> None:
        self._read = read
        self._changed = threading.Condition()
        self._feeds: list[Feed] = []
        self._thread: threading.Thread | None = None
        self._ends: Ends = {}
        """The last rows that the feeds have got."""

    def add(self, feed: Feed) -> Ends:
        """Gives the feed all rows from now on, until `remove`. Returns the last row of each chain before them.

        Raises:
            StoreUnavailable: The store cannot be read.
        """
        ends = None if self._thread is not None else self._read(last_rows)
        with self._changed:
            if self._thread is None:
                # The thread of other followers may have ended since.
                self._ends = self._ends if ends is None else ends
                self._thread = threading.Thread(target=self._go, name="toolwire-follow", daemon=True)
                self._thread.start()
            self._feeds.append(feed)
            return self._ends

    def remove(self, feed: Feed) -> None:
        """Gives it no more rows. The thread ends with its last feed."""
        with self._changed:
            if feed in self._feeds:
                self._feeds.remove(feed)
            self._changed.notify_all()

    def _go(self) -> None:
        while True:
            try:
                rows = self._read(lambda connection: newer(connection, self._ends, FOLLOWED_AT_ONCE))
            except StoreUnavailable:
                # Each follower reads for itself then, and raises this error.
                rows = None
            with self._changed:
                self._share(rows)
                if not rows and self._feeds:
                    self._changed.wait_for(lambda: not self._feeds, FOLLOW_S)
                if not self._feeds:
                    self._thread = None
                    return

    def _share(self, rows: Sequence[LogRow] | None) -> None:
        for feed in self._feeds:
            feed.cut() if rows is None else feed.put(rows) if rows else None
        self._feeds = [feed for feed in self._feeds if not feed.is_cut]
        self._ends = {**self._ends, **{chain_of(row.seq): row.seq for row in rows or ()}}


class Follower:
    """One reader of the log: its place there, and its filter."""

    def __init__(
        self, tail: Tail, read: Read[Any], seen: Cursor, wanted: LogFilter, wake: Callable[[], object]
    ) -> None:
        self._tail, self._read, self._seen, self._wanted = tail, read, seen, wanted
        self._wake = wake
        self._feed: Feed | None = None
        self._ends: Ends = {}
        """The last rows before those of the feed."""
        self._is_closed = False

    def next_rows(self) -> list[LogRow]:
        """Returns the next rows; none if there are none yet.

        Raises:
            StoreUnavailable: The store cannot be read.
        """
        if self._feed is None or self._feed.is_cut:
            if self._feed is not None:
                # Raises if the store could not be read.
                self._read(last_rows)
            self._feed = Feed(self._wake)
            self._ends = self._tail.add(self._feed)
            if self._is_closed:
                # Another thread closed it meanwhile.
                self._tail.remove(self._feed)
        while self._seen.end or any(seq > self._seen.begin.get(chain, 0) for chain, seq in self._ends.items()):
            if not self._seen.end:
                self._seen = replace(BEGIN, begin=self._seen.begin, end=self._ends)
            rows = self._read(lambda connection: unseen(connection, self._seen, self._wanted, FOLLOWED_AT_ONCE))
            if rows:
                self._seen = replace(self._seen, place=(rows[-1].at, rows[-1].seq))
                return rows
            self._seen = replace(BEGIN, begin={**self._seen.begin, **self._seen.end})
        return self._take()

    def close(self) -> None:
        """Ends the feed."""
        self._is_closed = True
        if self._feed is not None:
            self._tail.remove(self._feed)

    def _take(self) -> list[LogRow]:
        found: list[LogRow] = []
        begin = dict(self._seen.begin)
        while self._feed is not None and self._feed.rows:
            row = self._feed.rows.popleft()
            chain = chain_of(row.seq)
            # A cursor may be of a row that this process has not read yet.
            if row.seq > begin.get(chain, 0):
                begin[chain] = row.seq
                found += [row] if self._wanted.matches(row) else []
        self._seen = replace(self._seen, begin=begin)
        return found


class Follow(Iterator[LogRow]):
    """The rows of a log and then new ones as they come. `close`, from any thread, ends it; so does its last reference.

    Raises:
        StoreUnavailable: At the next row, if the store cannot be read.
    """

    def __init__(self, tail: Tail, read: Read[Any], seen: Cursor, wanted: LogFilter) -> None:
        self._rows: deque[LogRow] = deque()
        self._woken = woken = threading.Event()
        self._is_closed = False
        # The tail must not hold this object, or it would never be dropped.
        self._follower = Follower(tail, read, seen, wanted, woken.set)

    def __next__(self) -> LogRow:
        while not self._is_closed:
            if self._rows:
                return self._rows.popleft()
            self._woken.clear()
            try:
                self._rows.extend(self._follower.next_rows())
            except StoreUnavailable:
                if self._is_closed:
                    break
                raise
            if not self._rows and not self._is_closed:
                self._woken.wait()
        raise StopIteration

    def close(self) -> None:
        """Ends the iterator. A thread that waits for its next row goes on."""
        self._is_closed = True
        self._follower.close()
        self._woken.set()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __del__(self) -> None:
        self._follower.close()

"""`toolwire runner`: gives hosts processes for their programs. It holds no store, no key and no tool.

Each connection has a thread and at most one process at a time. The runner reads no frame of a program.
"""

from __future__ import annotations

import json
import logging
import math
import select
import signal
import socket
import ssl
import threading
import time
from pathlib import Path
from typing import Any

from toolwire.fleet import relay
from toolwire.fleet.relay import MessageStream, RelayLost, one_line
from toolwire.fleet.runner_addresses import CONNECT_LIMIT_S, PemFile, listen, runner_address, secure, tls_context
from toolwire.sandbox.answers import replay_engine
from toolwire.sandbox.drive.waker import Waker
from toolwire.sandbox.forked import EXIT_TIMEOUT_S, Child
from toolwire.sandbox.limits import Limits
from toolwire.sandbox.report import Isolation
from toolwire.sandbox.zygote import Zygotes
from toolwire.vocabulary.errors import ConfigurationError, SandboxUnavailable

PLACES = 128
"""Programs at a time. Each takes five files, and a process may usually open 1,024."""
CONNECTIONS = 256
"""Connections at a time, those without a program included. A host keeps some for its next programs."""
GRACE_S = 30.0
"""Seconds that a runner which is told to end waits for its programs, as a worker does."""
MEMORY_LIMIT_MB = 1_048_576
CPU_LIMIT_S = 1_000_000
"""Largest limits that a host may ask for: beyond any machine, and still numbers that the kernel takes."""
_PAUSE_S = 0.1
_LOG = logging.getLogger("toolwire.fleet")


class RunnerServer:
    """Listens for hosts, and gives each of their programs a process of this machine."""

    def __init__(
        self,
        address: str,
        *,
        cert: PemFile | None = None,
        key: PemFile | None = None,
        client_ca: PemFile | None = None,
        insecure: bool = False,
    ) -> None:
        """Starts the sandbox and listens.

        Args:
            address: `HOST:PORT` or `unix:PATH`; port 0 is a free one.
            cert: PEM file of this runner's certificate, which names its host as the other side writes it.
            key: PEM file of its key, without a password.
            client_ca: PEM file of the authority that signed the certificates of the hosts.
            insecure: True listens without TLS, for this machine alone. A Unix socket never has TLS.

        Raises:
            ConfigurationError: The address or a file cannot be used, or plain TCP would leave this machine.
            SandboxUnavailable: This machine has no sandbox.
        """
        self._address = runner_address(address)
        self._context = tls_context([self._address], ssl.Purpose.CLIENT_AUTH, cert, key, client_ca, insecure=insecure)
        self.zygotes = Zygotes()
        self.isolation: Isolation = self.zygotes.isolation()
        self._listener = listen(self._address)
        self._waker = Waker()
        self.places = threading.BoundedSemaphore(PLACES)
        self._connections = threading.BoundedSemaphore(CONNECTIONS)
        self._is_ending = False

    @property
    def address(self) -> str:
        """The address at which it listens."""
        if self._address.port is None:
            return self._address.text
        host, port = self._listener.getsockname()[:2]
        return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"

    def serve(self) -> None:
        """Serves hosts until `stop`. Then it takes no new program, and waits `GRACE_S` for those that run."""
        poll = select.poll()
        poll.register(self._listener, select.POLLIN)
        poll.register(self._waker.descriptor, select.POLLIN)
        while not self._is_ending:
            poll.poll()
            if not self._is_ending:
                self._accept()
        self._listener.close()
        if self._address.port is None:
            Path(self._address.host).unlink(missing_ok=True)
        until = time.monotonic() + GRACE_S
        for _ in range(PLACES):
            self.places.acquire(timeout=max(until - time.monotonic(), 0.0))
        self.zygotes.close()

    def stop(self) -> None:
        """Tells it to end; from any thread or signal handler."""
        self._is_ending = True
        self._waker.wake()

    def _accept(self) -> None:
        try:
            connection, peer = self._listener.accept()
        except OSError as error:
            # Too many open files, or the host was faster away.
            _LOG.warning("a connection could not be accepted: %s", error)
            time.sleep(_PAUSE_S)
            return
        name = f"{peer[0]}:{peer[1]}" if isinstance(peer, tuple) else self._address.text
        if self._connections.acquire(blocking=False):
            threading.Thread(target=self._serve_host, args=(connection, name), name=f"host {name}", daemon=True).start()
        else:
            _LOG.warning("refused %s: there are %d connections already", name, CONNECTIONS)
            connection.close()

    def _serve_host(self, connection: socket.socket, name: str) -> None:
        host = None
        try:
            stream = MessageStream(secure(connection, self._context, time.monotonic() + CONNECT_LIMIT_S))
            host = HostConnection(self, stream)
            host.serve()
        except (RelayLost, SandboxUnavailable) as lost:
            # A host closes what it no longer needs. With a program it has died, or gave the program up.
            if host is None or host.child is not None or str(lost) != relay.CLOSED:
                what = "refused" if host is None else "closed the connection of"
                _LOG.warning("%s %s: %s", what, name, one_line(lost))
        finally:
            if host is not None:
                host.close()
            self._connections.release()


class HostConnection:
    """One host's connection: programs one after the other, in one thread."""

    def __init__(self, server: RunnerServer, stream: MessageStream) -> None:
        self._server = server
        self._stream = stream
        self.child: Child | None = None
        """The process of the present program."""
        self._rest = bytearray()
        """Bytes for which the program's pipe has no room."""

    def serve(self) -> None:
        """Serves the host until its connection is lost. Raises RelayLost, SandboxUnavailable."""
        there = self._server.zygotes.isolation()
        said = {"level": there.level, "report": there.report, "engine": replay_engine, "places": PLACES}
        self._stream.send(relay.ISOLATION, json.dumps(said).encode())
        while True:
            while len(self._rest) < relay.BUFFER_BYTES and (message := self._stream.next()) is not None:
                self._take(*message)
            self._wait()

    def close(self) -> None:
        """Kills the program, and closes the connection."""
        if self.child is not None:
            self._release(self.child)
        self._stream.close()

    def _take(self, kind: bytes, data: bytes) -> None:
        if kind == relay.DATA:
            if self.child is not None:
                self._rest += data
                self._write_rest(self.child)
        elif kind == relay.START:
            self._start(data)
        elif kind == relay.SIGNAL:
            self._signal(data)
        else:
            raise RelayLost(f"an unexpected message came: {kind!r}")

    def _wait(self) -> None:
        """Waits for the next event, and passes bytes of the program on."""
        child, stream, is_full = self.child, self._stream, len(self._rest) >= relay.BUFFER_BYTES
        poll = select.poll()
        reading = select.POLLRDHUP if is_full else select.POLLIN
        poll.register(stream, reading | (select.POLLOUT if stream.unsent else 0))
        if child is not None and stream.unsent < relay.BUFFER_BYTES:
            poll.register(child.reader, select.POLLIN)
        if child is not None and self._rest:
            poll.register(child.writer, select.POLLOUT)
        ready = dict(poll.poll())
        if ready.get(stream.fileno(), 0) & ~select.POLLOUT:
            if is_full:
                # The host is gone. Nothing is read now, so nothing else would tell.
                raise RelayLost(relay.CLOSED)
            stream.is_readable = True
        if child is not None:
            self._write_rest(child)
            if child.reader.fileno() in ready:
                self._pass_on(child)
        stream.flush()

    def _pass_on(self, child: Child) -> None:
        data = child.reader.read(relay.READ_BYTES)
        if data:
            self._stream.send(relay.DATA, data)
        else:
            self._end(child, is_killed=False)

    def _write_rest(self, child: Child) -> None:
        try:
            while self._rest and (written := child.writer.write(self._rest)):
                del self._rest[:written]
        except OSError:
            # The program reads no more.
            self._rest.clear()

    def _start(self, data: bytes) -> None:
        if self.child is not None:
            raise RelayLost("a second program was asked for on one connection")
        limits = requested_limits(data)
        if not self._server.places.acquire(blocking=False):
            return self._stream.send(relay.REFUSED, b"all places of this runner are taken, or it is about to end")
        try:
            self.child, _ = self._server.zygotes.spawn(limits)
        except SandboxUnavailable as error:
            self._server.places.release()
            return self._stream.send(relay.REFUSED, one_line(error).encode("utf-8", "replace"))
        return self._stream.send(relay.THERE)

    def _signal(self, data: bytes) -> None:
        """Passes a signal on. One for a program that has just ended is nothing wrong."""
        if data not in (bytes([signal.SIGTERM]), bytes([signal.SIGKILL])):
            raise RelayLost("a signal was asked for that is neither SIGTERM nor SIGKILL")
        if self.child is not None:
            self.child.signal(signal.Signals(data[0]))
            if data[0] == signal.SIGKILL:
                self._end(self.child, is_killed=True)

    def _end(self, child: Child, *, is_killed: bool) -> None:
        """Tells how the program ended. With `is_killed` the kernel may still be taking its process down."""
        child.kill()
        end = (child.exit_after_kill() if is_killed else None) or child.exit(EXIT_TIMEOUT_S)
        self._release(child)
        told = None if end is None else {"status": int(end.status), "cpu_s": float(end.cpu_s)}
        self._stream.send(relay.EXIT, json.dumps(told).encode())

    def _release(self, child: Child) -> None:
        self.child = None
        self._rest.clear()
        child.close()
        self._server.places.release()


def requested_limits(data: bytes) -> Limits:
    """Returns the limits that a host asks for. Raises RelayLost if they are none."""
    try:
        asked: Any = json.loads(data[: relay.READ_BYTES])
        memory_mb, cpu_s = asked["memory_mb"], asked["cpu_s"]
        if not (0 < memory_mb <= MEMORY_LIMIT_MB and 0 < cpu_s <= CPU_LIMIT_S):
            raise ValueError(memory_mb)
        return Limits(memory_mb=memory_mb, cpu_s=math.ceil(cpu_s))
    except (ValueError, TypeError, KeyError, RecursionError, ConfigurationError):
        raise RelayLost("a program was asked for with limits that are none") from None

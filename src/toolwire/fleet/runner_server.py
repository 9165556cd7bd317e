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
from contextlib import suppress
from pathlib import Path
from typing import Any

from toolwire.fleet import relay
from toolwire.fleet.relay import MessageStream, Relay, RelayClosed, RelayLost
from toolwire.fleet.runner_addresses import (
    CONNECT_LIMIT_S,
    CertificateFile,
    listener,
    runner_address,
    secured,
    tls_context,
)
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
        listen: str,
        *,
        cert: CertificateFile | None = None,
        key: CertificateFile | None = None,
        client_ca: CertificateFile | None = None,
        insecure: bool = False,
    ) -> None:
        """Starts the sandbox and listens.

        Args:
            listen: `HOST:PORT` or `unix:PATH`; port 0 is a free one.
            cert: PEM file of this runner's certificate, which names the host that clients connect to.
            key: PEM file of its key, without a password.
            client_ca: PEM file of the authority that signed the certificates of the hosts.
            insecure: True listens without TLS, for this machine alone. A Unix socket never has TLS.

        Raises:
            ConfigurationError: The address or a file cannot be used, or plain TCP would leave this machine.
            SandboxUnavailable: This machine has no sandbox.
        """
        self._address = runner_address(listen)
        self._context: ssl.SSLContext | None = None
        if insecure and not self._address.is_loopback:
            raise ConfigurationError(f"--insecure: others than this machine reach {listen}: use TLS, or 127.0.0.1")
        if not insecure and not self._address.path:
            if cert is None or key is None or client_ca is None:
                raise ConfigurationError(f"{listen} needs mutual TLS: give --cert, --key and --client-ca")
            self._context = tls_context(ssl.Purpose.CLIENT_AUTH, cert=cert, key=key, ca=client_ca)
        self.zygotes = Zygotes()
        self.isolation: Isolation = self.zygotes.isolation()
        self._listener = listener(self._address)
        self._waker = Waker()
        self._lock = threading.Lock()
        self._connections = self._programs = 0
        self._is_ending = False

    @property
    def address(self) -> str:
        """The address at which it listens."""
        if self._address.path:
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
        if self._address.path:
            Path(self._address.path).unlink(missing_ok=True)
        until = time.monotonic() + GRACE_S
        while self._programs and time.monotonic() < until:
            time.sleep(_PAUSE_S)
        self.zygotes.close()

    def stop(self) -> None:
        """Tells it to end; from any thread or signal handler."""
        self._is_ending = True
        self._waker.wake()

    def take_place(self) -> str:
        """Takes a place for a program; returns the reason if there is none, else ''."""
        with self._lock:
            if self._is_ending:
                return "this runner is about to end"
            if self._programs >= PLACES:
                return f"all {PLACES} places of this runner are taken"
            self._programs += 1
            return ""

    def give_back_place(self) -> None:
        """Gives a program's place back."""
        with self._lock:
            self._programs -= 1

    def _accept(self) -> None:
        try:
            connection, peer = self._listener.accept()
        except OSError as error:
            # Too many open files, or the host was faster away.
            _LOG.warning("a connection could not be accepted: %s", error)
            time.sleep(_PAUSE_S)
            return
        name = f"{peer[0]}:{peer[1]}" if isinstance(peer, tuple) else self._address.text
        with self._lock:
            is_full = self._connections >= CONNECTIONS
            self._connections += not is_full
        if is_full:
            _LOG.warning("refused %s: there are %d connections already", name, CONNECTIONS)
            connection.close()
            return
        threading.Thread(target=self._serve_host, args=(connection, name), name=f"host {name}", daemon=True).start()

    def _serve_host(self, connection: socket.socket, name: str) -> None:
        try:
            stream = MessageStream(secured(connection, self._context, time.monotonic() + CONNECT_LIMIT_S))
        except RelayLost as lost:
            _LOG.warning("refused %s: %s", name, lost)
        else:
            _serve_stream(self, stream, name)
        finally:
            with self._lock:
                self._connections -= 1


class HostConnection:
    """One host's connection: programs one after the other."""

    def __init__(self, server: RunnerServer, stream: MessageStream) -> None:
        self._server = server
        self._stream = stream
        self._relay = Relay(stream)
        self._child: Child | None = None

    @property
    def has_program(self) -> bool:
        """True while a program runs."""
        return self._child is not None

    def serve(self) -> None:
        """Serves the host until its connection is lost. Raises RelayLost, SandboxUnavailable."""
        there = self._server.zygotes.isolation()
        said = {"level": there.level, "report": there.report, "engine": replay_engine}
        self._stream.send(relay.ISOLATION, json.dumps(said).encode())
        for kind, data in self._relay.messages():
            if kind == relay.START:
                self._start(data)
            elif kind == relay.SIGNAL:
                self._signal(data)
            elif kind == relay.ENDED:
                self._end(is_killed=False)
            else:
                raise RelayLost(f"an unexpected message came: {kind!r}")

    def close(self) -> None:
        """Kills the program, and closes the connection."""
        if self._child is not None:
            self._release(self._child)
        self._stream.close(at_once=True)

    def _start(self, data: bytes) -> None:
        if self._child is not None:
            raise RelayLost("a second program was asked for on one connection")
        limits = requested_limits(data)
        if reason := self._server.take_place():
            return self._stream.send(relay.REFUSED, reason.encode())
        try:
            child, _ = self._server.zygotes.spawn(limits)
        except SandboxUnavailable as error:
            self._server.give_back_place()
            return self._stream.send(relay.REFUSED, str(error).encode()[: relay.READ_BYTES])
        except BaseException:
            self._server.give_back_place()
            raise
        self._child = child
        self._relay.attach(child.reader, child.writer)
        return self._stream.send(relay.THERE)

    def _signal(self, data: bytes) -> None:
        """Passes a signal on. One for a program that has just ended is nothing wrong."""
        if data not in (bytes([signal.SIGTERM]), bytes([signal.SIGKILL])):
            raise RelayLost("a signal was asked for that is neither SIGTERM nor SIGKILL")
        if self._child is None:
            return
        number = signal.Signals(data[0])
        self._child.signal(number)
        if number == signal.SIGKILL:
            self._end(is_killed=True)

    def _end(self, *, is_killed: bool) -> None:
        """Tells how the program ended. With `is_killed` the kernel may still be taking its process down."""
        child = self._child
        if child is None:
            return
        child.kill()
        end = (child.exit_after_kill() if is_killed else None) or child.exit(EXIT_TIMEOUT_S)
        self._release(child)
        told = None if end is None else {"status": int(end.status), "cpu_s": float(end.cpu_s)}
        self._stream.send(relay.EXIT, json.dumps(told).encode())

    def _release(self, child: Child) -> None:
        self._child = None
        self._relay.detach()
        child.close()
        self._server.give_back_place()


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


def _serve_stream(server: RunnerServer, stream: MessageStream, name: str) -> None:
    host = HostConnection(server, stream)
    try:
        host.serve()
    except RelayClosed:
        # A host closes what it needs no longer; with a program it has died, or gave the program up.
        if host.has_program:
            _LOG.info("%s closed its connection with a program that ran", name)
    except (RelayLost, SandboxUnavailable) as lost:
        _LOG.warning("the connection of %s is closed: %s", name, lost)
    finally:
        with suppress(OSError):
            host.close()

"""Where runners are, and connections to them: mutual TLS, or a Unix socket or plain TCP that stays on one machine."""

from __future__ import annotations

import ipaddress
import os
import select
import socket
import ssl
import time
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from toolwire.fleet.relay import RelayLost, reason_of, wait_for
from toolwire.vocabulary.errors import ConfigurationError

CONNECT_LIMIT_S = 5.0
"""Seconds for a connection, for its TLS handshake, and for a runner's first message: silence holds nothing longer."""
BACKLOG = 128
"""Connections that may wait until the runner accepts them."""
_UNIX = "unix:"
_KEEPALIVE = {"TCP_KEEPIDLE": 10, "TCP_KEEPINTVL": 5, "TCP_KEEPCNT": 3, "TCP_USER_TIMEOUT": 25_000}
"""The other machine counts as dead after 25 s without a sign: programs run elsewhere, and children are killed."""

PemFile = str | os.PathLike[str]


@dataclass(frozen=True, slots=True)
class RunnerAddress:
    """One address, `HOST:PORT` or `unix:PATH`.

    Attributes:
        text: As it was written.
        host: A name or number; for a Unix socket its path.
        port: None for a Unix socket. To listen, 0 is a free one.
    """

    text: str
    host: str
    port: int | None

    @property
    def is_local(self) -> bool:
        """True if only this machine can reach it."""
        try:
            return self.port is None or self.host == "localhost" or ipaddress.ip_address(self.host).is_loopback
        except ValueError:
            return False


def runner_address(text: str) -> RunnerAddress:
    """Reads an address.

    Raises:
        ConfigurationError: It is none.
    """
    if text.startswith(_UNIX) and text != _UNIX:
        return RunnerAddress(text, text.removeprefix(_UNIX), None)
    host, _, port = text.rpartition(":")
    if not host or "/" in host or not port.isdecimal() or int(port) > 65_535:
        raise ConfigurationError(f"{text!r:.80} is not the address of a runner: write HOST:PORT, or unix:PATH")
    return RunnerAddress(text, host.strip("[]"), int(port))


def tls_context(
    addresses: Iterable[RunnerAddress],
    other_side: ssl.Purpose,
    cert: PemFile | None,
    key: PemFile | None,
    ca: PemFile | None,
    *,
    insecure: bool,
) -> ssl.SSLContext | None:
    """Returns mutual TLS 1.3; None if no address needs it. A host's context also compares the name of the runner.

    Raises:
        ConfigurationError: A file is missing or cannot be used, or plain TCP would leave this machine.
    """
    if insecure and (cert, key, ca) != (None, None, None):
        raise ConfigurationError("insecure: leave the certificate, key and authority out, or leave insecure out")
    by_network = [one for one in addresses if one.port is not None]
    if far := [one.text for one in by_network if insecure and not one.is_local]:
        raise ConfigurationError(f"insecure: others than this machine reach {far[0]}: use mutual TLS, or 127.0.0.1")
    if not by_network and (cert, key, ca) != (None, None, None):
        raise ConfigurationError("a unix: address has no TLS: leave the certificate, key and authority out")
    if insecure or not by_network:
        return None
    if cert is None or key is None or ca is None:
        raise ConfigurationError(
            f"{by_network[0].text} needs mutual TLS: give a certificate, its key, and the other side's authority"
        )
    is_host = other_side is ssl.Purpose.SERVER_AUTH
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT if is_host else ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_3
    context.verify_mode = ssl.CERT_REQUIRED
    try:
        # A password would be asked for at the terminal.
        context.load_cert_chain(cert, key, password="")
        context.load_verify_locations(ca)
    except (OSError, ValueError) as error:
        what = f"certificate {cert}, key {key} and authority {ca}"
        raise ConfigurationError(f"{what}: {reason_of(error)}: give PEM files, and a key without a password") from error
    return context


def connect(address: RunnerAddress, context: ssl.SSLContext | None) -> socket.socket:
    """Returns a connection to a runner. Raises RelayLost, with the reason."""
    until = time.monotonic() + CONNECT_LIMIT_S
    connection = None
    try:
        if address.port is not None:
            connection = socket.create_connection((address.host, address.port), CONNECT_LIMIT_S)
        else:
            connection = socket.socket(socket.AF_UNIX)
            connection.settimeout(CONNECT_LIMIT_S)
            connection.connect(address.host)
    except (OSError, ValueError) as error:
        if connection is not None:
            connection.close()
        raise RelayLost(reason_of(error)) from error
    return secure(connection, context, until, host=address.host)


def listen(address: RunnerAddress) -> socket.socket:
    """Returns a socket that listens. A Unix socket is for this user alone.

    Raises:
        ConfigurationError: The address is taken, or is not of this machine.
    """
    try:
        if address.port is not None:
            family = socket.AF_INET6 if ":" in address.host else socket.AF_INET
            return socket.create_server((address.host, address.port), family=family, backlog=BACKLOG)
        _remove_dead_socket(Path(address.host))
        listening, mask = socket.socket(socket.AF_UNIX), os.umask(0o177)
        try:
            listening.bind(address.host)
        finally:
            os.umask(mask)
        listening.listen(BACKLOG)
    except (OSError, ValueError) as error:
        raise ConfigurationError(f"cannot listen at {address.text}: {reason_of(error)}") from error
    return listening


def secure(
    connection: socket.socket, context: ssl.SSLContext | None, until: float, *, host: str | None = None
) -> socket.socket:
    """Returns the connection with TLS, or as it is if it needs none. `host` is the name of the runner, for its host.

    Raises:
        RelayLost: The other side shows no certificate that counts, speaks no TLS, or is silent.
    """
    if connection.family == socket.AF_UNIX:
        return connection
    try:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        for name, value in _KEEPALIVE.items():
            connection.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), value)
        if context is None:
            return connection
        connection.setblocking(False)
        connection = context.wrap_socket(connection, host is None, do_handshake_on_connect=False, server_hostname=host)
        _shake_hands(connection, until)
    except (OSError, ValueError, RelayLost) as error:
        connection.close()
        raise RelayLost(reason_of(error)) from error
    return connection


def _shake_hands(connection: ssl.SSLSocket, until: float) -> None:
    while True:
        try:
            return connection.do_handshake()
        except ssl.SSLWantReadError:
            wait_for(connection, select.POLLIN, until)
        except ssl.SSLWantWriteError:
            wait_for(connection, select.POLLOUT, until)


def _remove_dead_socket(path: Path) -> None:
    """Removes a socket that a killed runner has left."""
    if path.is_socket():
        with socket.socket(socket.AF_UNIX) as probe:
            if probe.connect_ex(str(path)) != 0:
                path.unlink()

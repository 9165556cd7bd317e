"""Where runners are, and the connections there: mutual TLS, a Unix socket, or plain TCP that stays on one machine."""

from __future__ import annotations

import ipaddress
import os
import select
import socket
import ssl
import time
from dataclasses import dataclass
from pathlib import Path

from toolwire.fleet.relay import RelayLost, reason_of, wait_for
from toolwire.vocabulary.errors import ConfigurationError

CONNECT_LIMIT_S = 5.0
"""Seconds for a connection, its TLS handshake, and the first message, on each side. Silence holds nothing longer."""
BACKLOG = 128
"""Connections that wait until the runner accepts them."""
_UNIX = "unix:"
_KEEPALIVE = {"TCP_KEEPIDLE": 10, "TCP_KEEPINTVL": 5, "TCP_KEEPCNT": 3, "TCP_USER_TIMEOUT": 25_000}
"""A machine that is switched off is noticed after 25 s: its programs run elsewhere, or its children are killed."""

CertificateFile = str | os.PathLike[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class RunnerAddress:
    """One address.

    Attributes:
        text: As it was written, for messages.
        host: Its name or number; empty for a Unix socket.
        port: Its port; 0 for a Unix socket, or for a free one to listen at.
        path: The path of a Unix socket; empty without.
    """

    text: str
    host: str = ""
    port: int = 0
    path: str = ""

    @property
    def is_loopback(self) -> bool:
        """True if only this machine can reach it."""
        try:
            return bool(self.path) or self.host == "localhost" or ipaddress.ip_address(self.host).is_loopback
        except ValueError:
            return False


def runner_address(text: str) -> RunnerAddress:
    """Reads `HOST:PORT` or `unix:PATH`.

    Raises:
        ConfigurationError: It is neither.
    """
    if text.startswith(_UNIX) and len(text) > len(_UNIX):
        return RunnerAddress(text=text, path=text.removeprefix(_UNIX))
    host, _, port = text.rpartition(":")
    if not host or not port.isdecimal() or int(port) > 65_535:
        raise ConfigurationError(f"{text!r:.80} is no address of a runner: write HOST:PORT, or unix:PATH")
    return RunnerAddress(text=text, host=host.strip("[]"), port=int(port))


def tls_context(
    purpose: ssl.Purpose, *, cert: CertificateFile, key: CertificateFile, ca: CertificateFile
) -> ssl.SSLContext:
    """Returns TLS 1.3 that shows a certificate and asks for one of `ca`. `purpose` says what the other side is.

    Raises:
        ConfigurationError: A file cannot be read, or is not what it should be.
    """
    is_host = purpose is ssl.Purpose.SERVER_AUTH
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT if is_host else ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_3
    context.verify_mode = ssl.CERT_REQUIRED
    try:
        context.load_cert_chain(cert, key, password=_no_password)
    except (OSError, ConfigurationError) as error:
        raise ConfigurationError(f"the certificate {cert} with the key {key} cannot be used: {error}") from error
    try:
        context.load_verify_locations(ca)
    except OSError as error:
        raise ConfigurationError(f"the certificates of the authority, {ca}, cannot be used: {error}") from error
    return context


def connect(address: RunnerAddress, context: ssl.SSLContext | None) -> socket.socket:
    """Returns a connection, with TLS if there is a context and the address is not a Unix socket.

    Raises:
        RelayLost: It does not come about; the text says why.
    """
    until = time.monotonic() + CONNECT_LIMIT_S
    try:
        if address.path:
            connection = socket.socket(socket.AF_UNIX)
            connection.settimeout(CONNECT_LIMIT_S)
            connection.connect(address.path)
            return connection
        connection = socket.create_connection((address.host, address.port), CONNECT_LIMIT_S)
    except (OSError, UnicodeError) as error:
        raise RelayLost(reason_of(error) if isinstance(error, OSError) else str(error)) from error
    return secured(connection, context, until, host=address.host)


def listener(address: RunnerAddress) -> socket.socket:
    """Returns a socket that listens. A Unix socket is for this user alone.

    Raises:
        ConfigurationError: The address is taken, or is not of this machine.
    """
    try:
        if not address.path:
            family = socket.AF_INET6 if ":" in address.host else socket.AF_INET
            return socket.create_server((address.host, address.port), family=family, backlog=BACKLOG)
        _remove_dead_socket(address.path)
        listening = socket.socket(socket.AF_UNIX)
        before = os.umask(0o177)
        try:
            listening.bind(address.path)
        finally:
            os.umask(before)
        listening.listen(BACKLOG)
    except OSError as error:
        raise ConfigurationError(f"cannot listen at {address.text}: {reason_of(error)}") from error
    return listening


def secured(
    connection: socket.socket, context: ssl.SSLContext | None, until: float, *, host: str | None = None
) -> socket.socket:
    """Returns the connection with TLS, or as it is without a context. `host` is the server's name, if it is one.

    Raises:
        RelayLost: The other side shows no certificate that counts, speaks no TLS, or is silent.
    """
    try:
        if connection.family != socket.AF_UNIX:
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
            for name, value in _KEEPALIVE.items():
                connection.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), value)
        if context is None or connection.family == socket.AF_UNIX:
            return connection
        connection.setblocking(False)
        is_server = host is None
        tls = context.wrap_socket(connection, is_server, do_handshake_on_connect=False, server_hostname=host)
    except OSError as error:
        connection.close()
        raise RelayLost(reason_of(error)) from error
    try:
        _shake_hands(tls, until)
    except (OSError, RelayLost) as error:
        tls.close()
        raise RelayLost(reason_of(error) if isinstance(error, OSError) else str(error)) from error
    return tls


def _shake_hands(tls: ssl.SSLSocket, until: float) -> None:
    while True:
        try:
            return tls.do_handshake()
        except ssl.SSLWantReadError:
            wait_for(tls, until, select.POLLIN, CONNECT_LIMIT_S)
        except ssl.SSLWantWriteError:
            wait_for(tls, until, select.POLLOUT, CONNECT_LIMIT_S)


def _no_password() -> str:
    raise ConfigurationError("the key is encrypted: give one without a password")


def _remove_dead_socket(path: str) -> None:
    """Removes a socket that a runner left when it was killed."""
    if not Path(path).is_socket():
        return
    with socket.socket(socket.AF_UNIX) as probe:
        try:
            probe.connect(path)
        except ConnectionRefusedError:
            Path(path).unlink()

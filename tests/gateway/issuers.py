"""An authorization server at a port of this machine: its metadata, its keys, and tokens that it signs."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Generator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import jwt
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from jwt.algorithms import ECAlgorithm, RSAAlgorithm

AUDIENCE = "https://tools.example.com/mcp"
METADATA = "/.well-known/oauth-authorization-server"


class LocalIssuer:
    """Its public state is what its pages say."""

    def __init__(self, port: int = 0) -> None:
        self.private: dict[str, Any] = {}
        self.published: list[dict[str, Any]] = []
        self.asked: list[str] = []
        self.pages: dict[str, tuple[int, bytes]] = {}
        """Answers that count before its own, by path."""
        self.server = ThreadingHTTPServer(("127.0.0.1", port), self._handler())
        self.port = int(self.server.server_address[1])
        self.url = f"http://127.0.0.1:{self.port}"
        self.rotate("first")

    def rotate(self, key_id: str, *, is_ec: bool = False) -> None:
        """Publishes a new key in place of all others."""
        if is_ec:
            self.private[key_id] = ec.generate_private_key(ec.SECP256R1())
            public = json.loads(ECAlgorithm.to_jwk(self.private[key_id].public_key()))
        else:
            self.private[key_id] = rsa.generate_private_key(public_exponent=65_537, key_size=2_048)
            public = json.loads(RSAAlgorithm.to_jwk(self.private[key_id].public_key()))
        self.published = [{**public, "kid": key_id, "use": "sig", "alg": "ES256" if is_ec else "RS256"}]

    def claims(self, **changed: Any) -> dict[str, Any]:
        """Returns the claims of a good token, changed; None takes one away."""
        now = int(time.time())
        good = {"iss": self.url, "aud": AUDIENCE, "sub": "ann", "scope": "tools:read", "client_id": "editor"}
        return {name: value for name, value in {**good, "exp": now + 60, **changed}.items() if value is not None}

    def token(self, key_id: str = "first", algorithm: str = "RS256", **changed: Any) -> str:
        return jwt.encode(self.claims(**changed), self.private[key_id], algorithm, headers={"kid": key_id})

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        issuer = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                issuer.asked.append(self.path)
                status, body = issuer.pages.get(self.path) or issuer.answer(self.path)
                self.send_response(status)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, format: str, *args: Any) -> None:
                """Says nothing."""

        return Handler

    def answer(self, path: str) -> tuple[int, bytes]:
        if path == METADATA:
            return 200, json.dumps({"issuer": self.url, "jwks_uri": f"{self.url}/keys"}).encode()
        return (200, json.dumps({"keys": self.published}).encode()) if path == "/keys" else (404, b"")


@contextmanager
def issuing(port: int = 0) -> Generator[LocalIssuer]:
    issuer = LocalIssuer(port)
    thread = threading.Thread(target=issuer.server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield issuer
    finally:
        issuer.server.shutdown()
        thread.join()
        issuer.server.server_close()

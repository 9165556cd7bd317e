"""Forty forms in which secrets come. None of them is real."""

from __future__ import annotations

from typing import Any

_X = "Zq7Lm2Vx9Kp4Rt8Wb3Nc6Yd1"
_HEX = "9f86d081884c7d659a2feaa0c55ad015"
_KEY = f"MIIEvQIBADANBgkqhkiG9w0{_X}"
_JWT = f"eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiI0MiJ9.{_X}"

BY_NAME: list[tuple[Any, str]] = [
    ({"password": _X}, _X),
    ({"db_passwd": _X}, _X),
    ({"user": "me", "PWD": _X}, _X),
    ({"nested": [{"client_secret": _X}]}, _X),
    ({"api_key": _X}, _X),
    ({"X-API-Key": _X}, _X),
    ({"apiKey": _X}, _X),
    ({"access_token": _X}, _X),
    ({"refreshToken": [_X, "b"]}, _X),
    ({"Authorization": f"Custom {_X}"}, _X),
    ({"headers": {"Cookie": f"session={_X}"}}, _X),
    ({"private_key": {"pem": _X}}, _X),
    ({"aws_secret_access_key": _X}, _X),
    ({"credentials": {"user": "me", "pass": _X}}, _X),
    ({"name": "Authorization", "value": _X}, _X),
    ({"argv": ["login", "--password", _X]}, _X),
    ({"pairs": [["token", _X]]}, _X),
    ({"passphrase": 73519284}, "73519284"),
]
BY_LOOK: list[tuple[str, str]] = [
    (f"Authorization: Bearer {_X}", _X),
    (f"curl -H 'authorization: token {_X}'", _X),
    ("Basic dXNlcjpadzdMbTJWeDlLcA==", "dXNlcjpadzdMbTJWeDlLcA"),
    (f"sk-{_X}", _X),
    (f"sk-ant-api03-{_X}", _X),
    (f"the key sk_live_{_X} was used", _X),
    (f"ghp_{_X}{_X}", _X),
    (f"github_pat_{_X}", _X),
    (f"glpat-{_X}", _X),
    ("AKIAIOSFODNN7EXAMPLE", "AKIAIOSFODNN7EXAMPLE"),
    (f"AIza{_X}{_X}", _X),
    (f"xoxb-1234567890-{_X}", _X),
    (f"hf_{_X}", _X),
    (f"npm_{_X}{_X}", _X),
    (_JWT, "eyJzdWIiOiI0MiJ9"),
    (f"-----BEGIN RSA PRIVATE KEY-----\n{_KEY}\n{_KEY}\n-----END RSA PRIVATE KEY-----", _KEY),
    (f"-----BEGIN OPENSSH PRIVATE KEY-----\\n{_KEY}", _KEY),
    (f"https://me:{_X}@example.org/path", _X),
    (f"postgresql://app:{_X}@db/app", _X),
    (f"https://example.org/a?b=1&token={_X}&c=2", _X),
    (f"https://example.org/a?sig={_X}", _X),
    (f"Server=db;User Id=app;Password={_X};", _X),
    (f"DefaultEndpointsProtocol=https;AccountKey={_X}==;", _X),
    (f"Set-Cookie: id={_X}; HttpOnly", _X),
    (f'{{"password": "{_X}"}}', _X),
    (f"export API_KEY='{_X}'", _X),
    (f"mysql --password {_X}1", _X),
    (f"https://hooks.slack.com/services/T00/B00/{_X}", _X),
    (f"123456789:AA{_X}{_X}", _X),
    (f"SG.{_X}.{_X}", _X),
    (f"whsec_{_X}", _X),
    (f"AccessKeyId; SK{_HEX}", _HEX),
]
FORMS: list[tuple[Any, str]] = [*BY_NAME, *BY_LOOK]

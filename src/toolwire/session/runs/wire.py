"""The portable form of a suspended run: signed JSON that holds only data. The store remains the authority."""

from __future__ import annotations

import datetime
import hmac
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import Any, NoReturn, cast

from toolwire.journal.run import RunStart, SuspendedRun
from toolwire.permission.approval import VERDICTS, ApprovalRequest, Decider, Decision, DecisionRefused, RefusalCode
from toolwire.session.runs.portable_json import portable_json
from toolwire.session.runs.wire_shape import DECISIONS, ITEM, PENDING, SUSPENDED, check_shape, read_json
from toolwire.vocabulary.calls import Caller
from toolwire.vocabulary.errors import ConfigurationError, Unrepresentable
from toolwire.vocabulary.texts.counting import count_of
from toolwire.vocabulary.texts.lone_surrogates import utf8_bytes
from toolwire.vocabulary.values import canonical

WIRE_VERSION = "1.0"
"""Version of the form. A reader accepts the versions that it knows, and checks this before anything else."""

KEY_BYTES_MIN = 16
"""Minimum length of a key in bytes. A shorter key could be guessed."""

GivenDecisions = str | Mapping[str, Any] | Iterable[Decision | Mapping[str, Any]]
"""`Decision` objects, mappings of their fields, or JSON of these."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Decisions:
    """The decisions about one run.

    Attributes:
        run_id: The id of the run; empty if it was not given.
        rev: The revision that the decider saw; None if it was not given.
        items: One decision for each decided request.
    """

    run_id: str
    rev: int | None
    items: tuple[Decision, ...]


def suspended_to_json(view: SuspendedRun, key: bytes | None = None) -> str:
    """Returns the run as signed canonical JSON. `key` is the signing key; None uses the store's key.

    Raises:
        ConfigurationError: The key is too short.
        Unrepresentable: JSON cannot hold an argument.
    """
    body = _body(view)
    return portable_json({**body, "mac": _mac(body, view.key if key is None else key)})


def read_suspended(
    text: str | bytes,
    key: bytes,
    *,
    run_id: str | None = None,
    rev: int | None = None,
    principal: str | None = None,
    now: float | None = None,
) -> SuspendedRun:
    """Verifies and parses the portable form of a run. Facts that only the store knows, such as the reply, are empty.

    `run_id`, `rev` and `principal` are the expected values; None accepts any. `now` is the time in seconds since the
    epoch; None uses the current time.

    Raises:
        DecisionRefused: `schema_too_new`, `malformed`, `bad_mac`, `unknown_run`, `stale_rev`, `not_permitted` (another
            principal's run) or `expired`. Nothing was run or built.
    """
    document = read_json(text)
    _check_version(document)
    _check_mac(document, key)
    view = _view(document)
    if run_id is not None and view.run_id != run_id:
        _raise_refusal("unknown_run", f"this is run {view.run_id!r}, not {run_id!r}")
    if principal is not None and view.start.caller.principal != principal:
        _raise_refusal("not_permitted", "this run is another principal's")
    if rev is not None and view.rev != rev:
        _raise_refusal(
            "stale_rev", f"this describes run {view.run_id!r} at revision {view.rev}, and it is now at {rev}"
        )
    expires_at = view.start.expires_at
    if expires_at and (time.time() if now is None else now) > expires_at:
        _raise_refusal("expired", f"run {view.run_id!r} was not continued in time")
    return view


def read_decisions(given: str | bytes | Mapping[str, Any] | Sequence[Any]) -> Decisions:
    """Parses decisions from JSON text, or from the mapping or list that it describes. A list holds only decisions.

    The text names its decider, and the code that hands it in is responsible for that name.

    Raises:
        DecisionRefused: `malformed`, `schema_too_new`, or `unknown_request` for a decision that names no request.
    """
    if isinstance(given, str | bytes):
        given = cast("Mapping[str, Any] | Sequence[Any]", read_json(given, kinds=(dict, list)))
    if isinstance(given, Mapping) and "verdict" in given:
        _raise_refusal("malformed", "decisions are a list, also if there is one: write [decision]")
    document: Mapping[str, Any] = given if isinstance(given, Mapping) else {"kind": "decisions", "items": list(given)}
    if "v" in document:
        _check_version(document)
    check_shape(document, DECISIONS, "decisions")
    items = tuple(_parse_decision(item) for item in document["items"])
    known = [item.request_id for item in items]
    if len(set(known)) < len(known):
        _raise_refusal("malformed", "two decisions are for one request")
    return Decisions(run_id=document.get("run_id", ""), rev=document.get("rev"), items=items)


def decisions_of(run_id: str, given: GivenDecisions) -> list[Decision]:
    """Returns decisions from any of the accepted forms.

    Raises:
        DecisionRefused: `malformed`, or `unknown_run` if the decisions are for another run.
    """
    if isinstance(given, str | Mapping):
        read = read_decisions(cast("str | Mapping[str, Any]", given))
        if read.run_id not in ("", run_id):
            raise DecisionRefused("unknown_run", f"the decisions are for run {read.run_id!r}, not {run_id!r}")
        return list(read.items)
    if not isinstance(cast("object", given), Iterable):
        _raise_refusal("malformed", f"decisions={given!r:.80}: give a list of decisions")
    items = list(given)
    plain = [item for item in items if not isinstance(item, Decision)]
    rest = iter(read_decisions(plain).items if plain else ())
    return [item if isinstance(item, Decision) else next(rest) for item in items]


def decisions_to_json(view: SuspendedRun, items: Sequence[Decision]) -> str:
    """Returns the decisions as canonical JSON, for `read_decisions` or `Session.resume`."""
    written = [_item(item) for item in items]
    return portable_json(
        {"v": WIRE_VERSION, "kind": "decisions", "run_id": view.run_id, "rev": view.rev, "items": written}
    )


def _body(view: SuspendedRun) -> dict[str, Any]:
    start = view.start
    return {
        "v": WIRE_VERSION,
        "kind": "suspended_run",
        "run_id": start.run_id,
        "rev": view.rev,
        "principal": start.caller.principal,
        "created_at": _moment(start.created_at),
        "expires_at": _moment(start.expires_at),
        "engine": start.engine,
        "policy_digest": start.policy_digest,
        "tools": dict(start.tools),
        "journal": {"head": view.head, "root": view.root},
        "pending": [_pending(request) for request in view.pending],
    }


def _pending(request: ApprovalRequest) -> dict[str, Any]:
    written = {
        "id": request.id,
        "path": ["root"],
        "call_id": request.call_id,
        "tool": request.tool,
        "arguments": dict(request.arguments),
        "arguments_digest": request.arguments_digest,
        "effects": list(request.effects),
        "taints": list(request.taints),
        "reasons": list(request.reasons),
        "expires_at": _moment(request.expires_at),
        "decisions": list(VERDICTS[request.kind]),
        "arguments_schema": dict(request.arguments_schema),
    }
    if request.kind == "approval":
        return written
    question = {"kind": request.kind, "question": request.question, "answer_schema": dict(request.answer_schema)}
    return {**written, **question}


def _item(decision: Decision) -> dict[str, Any]:
    written: dict[str, Any] = {"request_id": decision.request_id, "verdict": decision.verdict}
    if decision.arguments is not None:
        written["arguments"] = dict(decision.arguments)
    if decision.verdict == "answer":
        written["answer"] = decision.answer
    if decision.reason:
        written["reason"] = decision.reason
    if decision.seen_arguments_digest:
        written["seen_arguments_digest"] = decision.seen_arguments_digest
    by = {"principal": decision.by.principal, "channel": decision.by.channel, "authn": decision.by.authn}
    return {**written, "by": {name: text for name, text in by.items() if text}}


def _view(document: Mapping[str, Any]) -> SuspendedRun:
    check_shape(document, SUSPENDED, "suspended run")
    caller = Caller(principal=document["principal"])
    tools = cast("dict[str, str]", document["tools"])
    start = RunStart(
        run_id=document["run_id"],
        reply={},
        protocol="",
        caller=caller,
        policy_digest=document["policy_digest"],
        tools=tools,
        engine=document["engine"],
        created_at=_seconds(document["created_at"]),
        expires_at=_seconds(document["expires_at"]),
    )
    pending = tuple(_parse_request(item, start) for item in document["pending"])
    return SuspendedRun(
        start=start,
        rev=document["rev"],
        head=document["journal"]["head"],
        root=document["journal"]["root"],
        pending=pending,
    )


def _parse_request(item: Mapping[str, Any], start: RunStart) -> ApprovalRequest:
    check_shape(item, PENDING, "pending request")
    return ApprovalRequest(
        id=item["id"],
        call_id=item["call_id"],
        tool=item["tool"],
        arguments=item["arguments"],
        reasons=tuple(item["reasons"]),
        caller=start.caller,
        run_id=start.run_id,
        tool_digest=start.tools.get(item["tool"], ""),
        arguments_digest=item["arguments_digest"],
        effects=tuple(item["effects"]),
        taints=tuple(item["taints"]),
        arguments_schema=item["arguments_schema"],
        kind=item.get("kind", "approval"),
        question=item.get("question", ""),
        answer_schema=item.get("answer_schema", {}),
        expires_at=_seconds(item["expires_at"]),
    )


def _parse_decision(item: object) -> Decision:
    if isinstance(item, Decision):
        return item
    if not isinstance(item, Mapping):
        _raise_refusal("malformed", "a decision must be an object")
    given = cast("Mapping[str, Any]", item)
    check_shape(given, ITEM, "decision")
    if not given["request_id"]:
        _raise_refusal("unknown_request", "a decision names no request")
    by = cast("Mapping[str, str]", given.get("by", {}))
    try:
        return Decision(
            verdict=given["verdict"],
            arguments=given.get("arguments"),
            reason=given.get("reason", ""),
            request_id=given["request_id"],
            by=Decider(**by),
            seen_arguments_digest=given.get("seen_arguments_digest", ""),
            answer=given.get("answer"),
        )
    except ConfigurationError as error:
        raise DecisionRefused("malformed", str(error), request_id=given["request_id"]) from error


def _check_version(document: Mapping[str, Any]) -> None:
    version = document.get("v")
    if version == WIRE_VERSION:
        return
    parts = version.split(".") if isinstance(version, str) else []
    if len(parts) != 2 or not all(part.isascii() and part.isdecimal() and len(part) < 6 for part in parts):
        _raise_refusal("malformed", "it has no version")
    if tuple(map(int, parts)) > tuple(map(int, WIRE_VERSION.split("."))):
        _raise_refusal("schema_too_new", f"it is of version {version}, and this toolwire reads {WIRE_VERSION}")
    _raise_refusal("malformed", f"there is no version {version}")


def _check_mac(document: Mapping[str, Any], key: bytes) -> None:
    mac = document.get("mac")
    try:
        wanted = _mac({name: value for name, value in document.items() if name != "mac"}, key)
    except Unrepresentable as error:
        raise DecisionRefused("bad_mac", "it holds a value that cannot be written as JSON") from error
    if type(mac) is not dict or cast("dict[str, Any]", mac).keys() != wanted.keys():
        _raise_refusal("bad_mac", "it is not signed")
    found = cast("dict[str, Any]", mac)
    texts = [(str(found[name]).encode("utf-8", "replace"), wanted[name].encode()) for name in wanted]
    if not all([type(found[name]) is str for name in wanted] + [hmac.compare_digest(*pair) for pair in texts]):
        _raise_refusal("bad_mac", "it was changed, or signed with another key")


def _mac(body: Mapping[str, Any], key: bytes) -> dict[str, str]:
    if len(key) < KEY_BYTES_MIN:
        raise ConfigurationError(
            f"the key has {count_of(len(key), 'byte')}: give at least {KEY_BYTES_MIN}, for example from os.urandom"
        )
    # A derived key for this purpose only, so that signatures reveal nothing about other uses of the store's key.
    signing = hmac.digest(key, b"toolwire suspended run 1", "sha256")
    text = utf8_bytes(canonical(body))
    kid = sha256(b"toolwire kid" + signing).hexdigest()[:8]
    return {"alg": "HS256", "kid": kid, "val": hmac.digest(signing, text, "sha256").hex()}


def _moment(seconds: float) -> str | None:
    return datetime.datetime.fromtimestamp(seconds, datetime.UTC).isoformat() if seconds else None


def _seconds(moment: str | None) -> float:
    if moment is None:
        return 0.0
    try:
        found = datetime.datetime.fromisoformat(moment)
    except ValueError:
        found = None
    if found is None or found.tzinfo is None:
        _raise_refusal("malformed", f"{moment[:40]!r} is not a time with a zone")
    return found.timestamp()


def _raise_refusal(code: RefusalCode, message: str) -> NoReturn:
    raise DecisionRefused(code, message)

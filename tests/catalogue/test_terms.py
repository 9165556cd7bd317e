"""The terms of a text that are compared."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolwire.catalogue.terms import stem, terms


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", []),
        ("send_email", ["send", "email"]),
        ("users.messages.send", ["user", "messag", "send"]),
        ("listUserFiles", ["listuserfil", "list", "user", "fil"]),
        ("IDCardOCR", ["idcardocr", "id", "card", "ocr"]),
        ("HTTPServer2", ["httpserver2", "http", "server"]),
        ("the file of a user", ["fil", "user"]),
        ("发送邮件", ["发", "送", "发送", "邮", "送邮", "件", "邮件"]),
        ("我的文件", ["文", "件", "文件"]),
        ("上传file到S3", ["上", "传", "上传", "fil", "到", "s3"]),
        ("naïve café", ["naïve", "café"]),
    ],
)
def test_a_text_has_these_terms(text: str, expected: list[str]) -> None:
    assert list(terms(text)) == expected


@pytest.mark.parametrize(
    "forms",
    [
        ("create", "creates", "created", "creating", "creation"),
        ("copy", "copies", "copied", "copying"),
        ("stop", "stops", "stopped", "stopping"),
        ("call", "calls", "called", "calling"),
        ("message", "messages", "messaging"),
        ("address", "addresses"),
        ("translate", "translation", "translations"),
        ("file", "files"),
    ],
)
def test_the_forms_of_a_word_are_one(forms: tuple[str, ...]) -> None:
    assert len({stem(form) for form in forms}) == 1


@pytest.mark.parametrize(("one", "other"), [("status", "state"), ("bus", "busy"), ("word", "world"), ("mail", "mall")])
def test_different_words_stay_different(one: str, other: str) -> None:
    assert stem(one) != stem(other)


@given(st.text())
def test_any_text_has_terms_that_are_not_empty(text: str) -> None:
    assert all(terms(text))

"""The files of `deploy/` are valid, and their commands are those that the command line has."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.architecture.source import ROOT
from tests.fleet.commands import parse_command

DEPLOY = ROOT / "deploy"
COMPOSE, KUBERNETES = DEPLOY / "compose.yaml", DEPLOY / "kubernetes.yaml"


def check_compose(file: Path) -> subprocess.CompletedProcess[str]:
    words = ("check-jsonschema", "--builtin-schema", "vendor.compose-spec", str(file))
    return subprocess.run([Path(sys.executable).with_name(words[0]), *words[1:]], capture_output=True, text=True)


def check_kubernetes(file: Path) -> subprocess.CompletedProcess[str]:
    words = ("kubernetes-validate", "--strict", str(file))
    return subprocess.run([Path(sys.executable).with_name(words[0]), *words[1:]], capture_output=True, text=True)


def test_the_compose_file_is_valid(tmp_path: Path) -> None:
    assert check_compose(COMPOSE).returncode == 0
    # The control: a field that compose does not have.
    wrong = tmp_path / "wrong.yaml"
    wrong.write_text(COMPOSE.read_text("utf-8").replace("read_only:", "read_once:"))
    assert check_compose(wrong).returncode != 0


def test_the_kubernetes_file_is_valid(tmp_path: Path) -> None:
    assert check_kubernetes(KUBERNETES).returncode == 0
    wrong = tmp_path / "wrong.yaml"
    wrong.write_text(KUBERNETES.read_text("utf-8").replace("readOnlyRootFilesystem:", "readOnlyRoot:"))
    assert check_kubernetes(wrong).returncode != 0


def documents() -> list[dict[str, Any]]:
    return list(yaml.safe_load_all(KUBERNETES.read_text("utf-8")))


def commands() -> list[list[str]]:
    services = yaml.safe_load(COMPOSE.read_text("utf-8"))["services"].values()
    containers = [
        document["spec"]["template"]["spec"]["containers"][0]
        for document in documents()
        if "template" in document.get("spec", {})
    ]
    return [service["command"] for service in services if "command" in service] + [one["args"] for one in containers]


@pytest.mark.parametrize("words", commands(), ids=lambda words: " ".join(words[1:3]))
def test_each_command_is_one_that_toolwire_has(words: list[str]) -> None:
    parse_command(words[1:])
    with pytest.raises(Exception, match="No such option: --other"):
        parse_command([*words[1:], "--other"])


def test_a_runner_has_no_secret_of_the_store_no_account_and_no_way_out() -> None:
    runner = yaml.safe_load(COMPOSE.read_text("utf-8"))
    assert runner["services"]["runner"]["networks"] == ["programs"]
    assert runner["networks"]["programs"] == {"internal": True}
    assert set(runner["services"]["runner"]["secrets"]) == {"runner_cert", "runner_key", "ca"}
    by_kind = {(document["kind"], document["metadata"]["name"]): document for document in documents()}
    pod = by_kind["Deployment", "runner"]["spec"]["template"]["spec"]
    assert pod["automountServiceAccountToken"] is False
    assert "envFrom" not in pod["containers"][0]
    policy = by_kind["NetworkPolicy", "workers-only"]["spec"]
    assert (policy["policyTypes"], policy["egress"]) == (["Ingress", "Egress"], [])
    (allowed,) = policy["ingress"]
    assert allowed["from"][0]["podSelector"] == {"matchLabels": {"app": "toolwire-worker"}}

"""Fakes, recorded calls, and conformance kits for your own parts. Toolwire itself does not import this package."""

from toolwire.facade.built_in.program_entry import programs_run_by
from toolwire.testing.approvers import CHECKS, ApproverFails, Said, check_approver
from toolwire.testing.cassette import Recorder, Replayer
from toolwire.testing.checks import PortFails
from toolwire.testing.protocols import PROTOCOL_CHECKS, check_protocol
from toolwire.testing.runner import Script, ScriptCallFailed, ScriptedRunner, ScriptTools
from toolwire.testing.store import MemoryRun, MemoryStore

__all__ = [
    "CHECKS",
    "PROTOCOL_CHECKS",
    "ApproverFails",
    "MemoryRun",
    "MemoryStore",
    "PortFails",
    "Recorder",
    "Replayer",
    "Said",
    "Script",
    "ScriptCallFailed",
    "ScriptTools",
    "ScriptedRunner",
    "check_approver",
    "check_protocol",
    "programs_run_by",
]

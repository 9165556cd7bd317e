"""Fakes of the ports, and conformance checks for implementations of them. Toolwire itself does not import it."""

from toolwire.facade.programs import programs_run_by as programs_run_by
from toolwire.testing.approvers import CHECKS as CHECKS
from toolwire.testing.approvers import ApproverFails as ApproverFails
from toolwire.testing.approvers import Said as Said
from toolwire.testing.approvers import check_approver as check_approver
from toolwire.testing.cassette import Recorder as Recorder
from toolwire.testing.cassette import Replayer as Replayer
from toolwire.testing.checks import PortFails as PortFails
from toolwire.testing.ledger import MemoryLedger as MemoryLedger
from toolwire.testing.ledger import Records as Records
from toolwire.testing.ledgers import LEDGER_CHECKS as LEDGER_CHECKS
from toolwire.testing.ledgers import MakeLedger as MakeLedger
from toolwire.testing.ledgers import OpenLedger as OpenLedger
from toolwire.testing.ledgers import check_ledger as check_ledger
from toolwire.testing.observers import OBSERVER_CHECKS as OBSERVER_CHECKS
from toolwire.testing.observers import MakeObserver as MakeObserver
from toolwire.testing.observers import check_observer as check_observer
from toolwire.testing.protocols import PROTOCOL_CHECKS as PROTOCOL_CHECKS
from toolwire.testing.protocols import check_protocol as check_protocol
from toolwire.testing.runner import Script as Script
from toolwire.testing.runner import ScriptCallFailed as ScriptCallFailed
from toolwire.testing.runner import ScriptedRunner as ScriptedRunner
from toolwire.testing.runner import ScriptTools as ScriptTools
from toolwire.testing.runner_programs import RUNNER_PROGRAMS as RUNNER_PROGRAMS
from toolwire.testing.runners import RUNNER_CHECKS as RUNNER_CHECKS
from toolwire.testing.runners import MakeRunner as MakeRunner
from toolwire.testing.runners import check_runner as check_runner
from toolwire.testing.sinks import SINK_CHECKS as SINK_CHECKS
from toolwire.testing.sinks import ListSink as ListSink
from toolwire.testing.sinks import MakeSink as MakeSink
from toolwire.testing.sinks import OpenSink as OpenSink
from toolwire.testing.sinks import check_sink as check_sink
from toolwire.testing.store import MemoryRun as MemoryRun
from toolwire.testing.store import MemoryStore as MemoryStore

__all__ = [
    "CHECKS",
    "LEDGER_CHECKS",
    "OBSERVER_CHECKS",
    "PROTOCOL_CHECKS",
    "RUNNER_CHECKS",
    "RUNNER_PROGRAMS",
    "SINK_CHECKS",
    "ApproverFails",
    "ListSink",
    "MakeLedger",
    "MakeObserver",
    "MakeRunner",
    "MakeSink",
    "MemoryLedger",
    "MemoryRun",
    "MemoryStore",
    "OpenLedger",
    "OpenSink",
    "PortFails",
    "Recorder",
    "Records",
    "Replayer",
    "Said",
    "Script",
    "ScriptCallFailed",
    "ScriptTools",
    "ScriptedRunner",
    "check_approver",
    "check_ledger",
    "check_observer",
    "check_protocol",
    "check_runner",
    "check_sink",
    "programs_run_by",
]

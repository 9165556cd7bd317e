"""Fakes of the ports and checks for whoever implements one. Nothing of toolwire's own imports it."""

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
from toolwire.testing.store import MemoryRun as MemoryRun
from toolwire.testing.store import MemoryStore as MemoryStore

__all__ = [
    "CHECKS",
    "LEDGER_CHECKS",
    "OBSERVER_CHECKS",
    "PROTOCOL_CHECKS",
    "ApproverFails",
    "MakeLedger",
    "MakeObserver",
    "MemoryLedger",
    "MemoryRun",
    "MemoryStore",
    "OpenLedger",
    "PortFails",
    "Recorder",
    "Records",
    "Replayer",
    "Said",
    "check_approver",
    "check_ledger",
    "check_observer",
    "check_protocol",
]

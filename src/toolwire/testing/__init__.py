"""Fakes of the ports and checks for whoever implements one. Nothing of toolwire's own imports it."""

from toolwire.testing.approvers import CHECKS as CHECKS
from toolwire.testing.approvers import ApproverFails as ApproverFails
from toolwire.testing.approvers import Said as Said
from toolwire.testing.approvers import check_approver as check_approver
from toolwire.testing.ledger import MemoryLedger as MemoryLedger
from toolwire.testing.ledger import Records as Records
from toolwire.testing.store import MemoryRun as MemoryRun
from toolwire.testing.store import MemoryStore as MemoryStore

__all__ = [
    "CHECKS",
    "ApproverFails",
    "MemoryLedger",
    "MemoryRun",
    "MemoryStore",
    "Records",
    "Said",
    "check_approver",
]

"""Many machines: runs go where there is room. The queue, and the workers that take runs from it."""

from __future__ import annotations

from toolwire.fleet.queue import ProcrastinateQueue as ProcrastinateQueue
from toolwire.fleet.worker import LEASE_S as LEASE_S
from toolwire.fleet.worker import Worker as Worker
from toolwire.fleet.worker import WorkerSettings as WorkerSettings

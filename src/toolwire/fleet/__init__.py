"""Many machines: runs go where there is room, and programs where there are no secrets."""

from __future__ import annotations

from toolwire.fleet.going_on import Outcome as Outcome
from toolwire.fleet.going_on import SessionFor as SessionFor
from toolwire.fleet.going_on import go_on as go_on
from toolwire.fleet.going_on import run_go_on as run_go_on
from toolwire.fleet.queue import ProcrastinateQueue as ProcrastinateQueue
from toolwire.fleet.remote_runner import RemoteRunner as RemoteRunner
from toolwire.fleet.runner_server import RunnerServer as RunnerServer
from toolwire.fleet.worker import LEASE_S as LEASE_S
from toolwire.fleet.worker import Worker as Worker
from toolwire.fleet.worker import WorkerSettings as WorkerSettings

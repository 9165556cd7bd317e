"""Fakes, recorded calls, and conformance kits for your own parts. Toolwire itself does not import this package."""

from toolwire.facade.built_in.program_entry import programs_run_by
from toolwire.journal.ledger.run_ledger import RunLedger
from toolwire.journal.log.memory_log import EndedCall
from toolwire.journal.run import RunStart
from toolwire.journal.run_queue import RunQueue
from toolwire.permission.check import Described
from toolwire.sandbox.answers import Answer, AnswerError, Parked, Replay
from toolwire.sandbox.program import Program, ProgramCall, ProgramParameter, ProgramTool
from toolwire.sandbox.runner import Flag, ProgramRunner
from toolwire.session.runs.resume import RunStore, Standing
from toolwire.testing.approvers import CHECKS, ApproverFails, MakeApprover, Person, Said, check_approver
from toolwire.testing.cassette import Recorder, Replayer
from toolwire.testing.checks import PortFails
from toolwire.testing.protocols import PROTOCOL_CHECKS, check_protocol
from toolwire.testing.queues import QUEUE_CHECKS, CheckedQueue, MakeQueue, check_queue
from toolwire.testing.runner import Script, ScriptCallFailed, ScriptedRunner, ScriptTools
from toolwire.testing.runner_programs import RUNNER_PROGRAMS
from toolwire.testing.runners import RUNNER_CHECKS, MakeRunner, check_runner
from toolwire.testing.scripted_model import ScriptedModel
from toolwire.testing.store import MemoryRun, MemoryStore
from toolwire.vocabulary.effects import Seen
from toolwire.vocabulary.kept_text import KeptText, Spill
from toolwire.vocabulary.run_step import InDoubtStep, Start, Step

__all__ = [
    "CHECKS",
    "PROTOCOL_CHECKS",
    "QUEUE_CHECKS",
    "RUNNER_CHECKS",
    "RUNNER_PROGRAMS",
    "Answer",
    "AnswerError",
    "ApproverFails",
    "CheckedQueue",
    "Described",
    "EndedCall",
    "Flag",
    "InDoubtStep",
    "KeptText",
    "MakeApprover",
    "MakeQueue",
    "MakeRunner",
    "MemoryRun",
    "MemoryStore",
    "Parked",
    "Person",
    "PortFails",
    "Program",
    "ProgramCall",
    "ProgramParameter",
    "ProgramRunner",
    "ProgramTool",
    "Recorder",
    "Replay",
    "Replayer",
    "RunLedger",
    "RunQueue",
    "RunStart",
    "RunStore",
    "Said",
    "Script",
    "ScriptCallFailed",
    "ScriptTools",
    "ScriptedModel",
    "ScriptedRunner",
    "Seen",
    "Spill",
    "Standing",
    "Start",
    "Step",
    "check_approver",
    "check_protocol",
    "check_queue",
    "check_runner",
    "programs_run_by",
]

"""The figures of a worker, as OpenMetrics text."""

from __future__ import annotations

from dataclasses import dataclass, field

CONTENT_TYPE = "application/openmetrics-text; version=1.0.0; charset=utf-8"


@dataclass(slots=True)
class Span:
    """How often something was done, and the seconds that it took in all."""

    count: int = 0
    seconds: float = 0.0

    def add(self, seconds: float) -> None:
        """Counts one more."""
        self.count += 1
        self.seconds += seconds


@dataclass(slots=True, kw_only=True)
class Figures:
    """What a worker tells of itself and of its store.

    Attributes:
        places: Runs that it works on at most at a time.
        running: Runs that it works on.
        ends: Number of its runs by how they ended.
        runs: The time of its runs.
        store: The time of its looks at the store.
        ready: Runs of the store that wait for a worker.
        oldest_ready_s: Seconds since the oldest of them was due.
        parked: Runs of the store that only a person puts back.
        runner_places: Programs that the runners of this worker take at a time; None without runners.
        taken_over: Times that the runs at work were taken over from a process that died, since their last step.
    """

    places: int
    running: int = 0
    ends: dict[str, int] = field(default_factory=dict[str, int])
    runs: Span = field(default_factory=Span)
    store: Span = field(default_factory=Span)
    ready: int = 0
    oldest_ready_s: float = 0.0
    parked: int = 0
    taken_over: int = 0
    runner_places: int | None = None

    def text(self) -> str:
        """Returns them as OpenMetrics."""
        lines = [
            *_gauge("toolwire_runs_ready", "Runs that wait for a worker.", self.ready),
            *_gauge("toolwire_runs_oldest_ready_seconds", "Age of the oldest of them.", self.oldest_ready_s),
            *_gauge("toolwire_runs_running", "Runs that this worker works on.", self.running),
            *_gauge("toolwire_runs_taken_over", "Times that the runs at work were taken over.", self.taken_over),
            *_gauge("toolwire_runs_parked", "Runs that wait for `toolwire runs requeue`.", self.parked),
            *_gauge("toolwire_worker_places", "Runs that this worker takes at a time.", self.places),
            *_gauge("toolwire_runner_places", "Programs that its runners take at a time.", self.runner_places),
            *_summary("toolwire_run_seconds", "Time of the runs of this worker.", self.runs),
            *_summary("toolwire_store_seconds", "Time of this worker's looks at the store.", self.store),
            "# TYPE toolwire_runs_ended counter",
            "# HELP toolwire_runs_ended Runs of this worker by how they ended.",
            *(f'toolwire_runs_ended_total{{how="{how}"}} {count}' for how, count in sorted(self.ends.items())),
            "# EOF",
        ]
        return "\n".join(lines) + "\n"


def _gauge(name: str, said: str, value: float | None) -> list[str]:
    """Returns the lines of a figure; none for one that is not there."""
    if value is None:
        return []
    return [f"# TYPE {name} gauge", f"# HELP {name} {said}", f"{name} {value:g}"]


def _summary(name: str, said: str, span: Span) -> list[str]:
    return [
        f"# TYPE {name} summary",
        f"# UNIT {name} seconds",
        f"# HELP {name} {said}",
        f"{name}_count {span.count}",
        f"{name}_sum {span.seconds:.6f}",
    ]

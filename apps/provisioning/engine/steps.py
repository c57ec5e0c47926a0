"""The contract of a step: what it may do, what it answers, how a blueprint lists it."""

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from django.utils.functional import Promise

from apps.inventory.models import Node, Site
from apps.provisioning.models import Run, RunStep
from apps.provisioning.ports import Compute

LOOK_AGAIN = 30.0  # seconds: the longest a waiting step sleeps when no watcher wakes it


@dataclass(frozen=True)
class Work:
    """What a step is given: the run as claimed, its own record, the node and the way to the site.

    `now` is the instant of the step's intent. The step runs in the run's tenant and outside any
    transaction.
    """

    run: Run
    step: RunStep
    site: Site
    node: Node | None
    compute: Compute
    now: datetime

    @property
    def server(self) -> Node:
        """The node, where a step cannot do without one."""
        if self.node is None:
            raise RuntimeError(f"run {self.run.pk} has no node")
        return self.node

    def name(self, what: str, ordinal: int = 1) -> str:
        """The deterministic name of an object this run makes: the same at every attempt."""
        return f"neo-{self.run.tail}-{what}-{ordinal}"

    def output_of(self, step: str) -> dict[str, Any]:
        """What an earlier step gave."""
        return dict(self.run.inputs.get(step, {}))


@dataclass(frozen=True)
class Done:
    """The step is finished. `then` runs in the transaction that stores this, in the
    run's tenant.
    """

    output: dict[str, Any] = field(default_factory=dict)
    evidence: list[dict[str, Any]] = field(default_factory=list)
    then: Callable[[], None] | None = None
    detail: str = ""


@dataclass(frozen=True)
class Wait:
    """Nothing to do until something changes; the watcher wakes the run, or it looks again after a
    while.
    """

    detail: str = ""
    seconds: float = LOOK_AGAIN


Outcome = Done | Wait
Act = Callable[[Work], Outcome]


@dataclass(frozen=True)
class Step:
    """One step of a blueprint. `undo` means "make sure it is gone" and is safe to repeat."""

    name: str
    label: Promise
    do: Act
    undo: Act | None = None
    limit: timedelta = timedelta(minutes=10)
    limit_of: Callable[[Run], timedelta] | None = None  # where the order decides the limit
    late: str = "took longer than its limit"
    skippable: bool = True


@dataclass(frozen=True)
class Blueprint:
    """A versioned list of steps and what happens at its ends, in the transaction of the last step.

    `on_success` and `on_undone` run in the run's tenant.
    """

    name: str
    version: int
    steps: tuple[Step, ...]
    on_success: Callable[[Run], None]
    on_undone: Callable[[Run], None]
    replaces_nodes: bool = False

    def step(self, position: int) -> Step:
        """The step at a position, from 0."""
        return self.steps[position]

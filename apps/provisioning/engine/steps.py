"""The contract of a step: what it may do, what it answers, how a blueprint lists it."""

from collections.abc import Callable
from dataclasses import asdict, dataclass, field, fields
from datetime import datetime, timedelta
from typing import Any, ClassVar, Self, TypeVar

from django.utils.functional import Promise

from apps.inventory.models import Node, Site
from apps.orders.models import Condition
from apps.orders.states import ServiceState
from apps.provisioning.models import Run, RunStep
from apps.provisioning.ports import Compute

LOOK_AGAIN = 30.0  # seconds: the longest a waiting step sleeps when no watcher wakes it


class Output:
    """What a step leaves to later ones: a frozen dataclass of JSON values, named after its step.

        @dataclass(frozen=True)
        class Leased(Output, step="lease_address"):
            address: str

    It is kept with the run and shown on its page, so a field that sounds like a secret is refused.
    """

    step: ClassVar[str]

    def __init_subclass__(cls, step: str) -> None:
        cls.step = step
        for name in cls.__annotations__:
            if any(word in name for word in ("token", "password", "secret")):
                raise TypeError(f"{cls.__name__}.{name}: an output never holds a secret")

    @classmethod
    def load(cls, stored: dict[str, Any]) -> Self:
        """As it was stored; fields of another version of the step are passed over."""
        known = {one.name for one in fields(cls)}  # type: ignore[arg-type]
        return cls(**{name: value for name, value in stored.items() if name in known})

    def dump(self) -> dict[str, Any]:
        """As it is stored."""
        return asdict(self)  # type: ignore[call-overload, no-any-return]


Given = TypeVar("Given", bound=Output)


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

    def keep_evidence(self, evidence: list[dict[str, Any]]) -> None:
        """Evidence of a refusal is kept too: for a step that is about to raise."""
        self.step.evidence = evidence
        self.step.save(update_fields=["evidence"])

    def output_of(self, step: str) -> dict[str, Any]:
        """What an earlier step gave."""
        return dict(self.run.inputs.get(step, {}))

    def output(self, kind: type[Given]) -> Given:
        """What an earlier step gave, as its own type. Raises KeyError when it gave nothing."""
        return kind.load(self.run.inputs[kind.step])


@dataclass(frozen=True)
class Done:
    """The step is finished. `then` runs in the transaction that stores this, in the
    run's tenant.
    """

    output: Output | dict[str, Any] = field(default_factory=dict)
    evidence: list[dict[str, Any]] = field(default_factory=list)
    then: Callable[[], None] | None = None
    detail: str = ""

    @property
    def stored(self) -> dict[str, Any]:
        """The output as JSON."""
        return self.output.dump() if isinstance(self.output, Output) else self.output


@dataclass(frozen=True)
class Wait:
    """Nothing to do until something changes; the watcher wakes the run, or it looks again after a
    while. `shows` is what the customer sees meanwhile, if it is not what the blueprint shows.
    """

    detail: str = ""
    seconds: float = LOOK_AGAIN
    shows: str = ""


Outcome = Done | Wait
Act = Callable[[Work], Outcome]


@dataclass(frozen=True)
class Claim:
    """What two people vouch for instead of the proof a step would gather."""

    claimed_by: str
    confirmed_by: str
    evidence: str
    at: datetime


@dataclass(frozen=True)
class Step:
    """One step of a blueprint. `undo` means "make sure it is gone" and is safe to repeat.

    A step that is not `skippable` may still be vouched for by two people where it has a `claim`:
    what it would have given. `leaves` names what stays behind, with the provider's id, when it
    cannot be undone.
    """

    name: str
    label: Promise
    do: Act
    undo: Act | None = None
    limit: timedelta = timedelta(minutes=10)
    limit_of: Callable[[Run], timedelta] | None = None  # where the order decides the limit
    late: str = "took longer than its limit"
    skippable: bool = True
    claim: Callable[[Run, Claim], Done] | None = None
    leaves: Callable[[Run, Node | None], str] | None = None


def _nothing(run: Run) -> None:
    """Nothing more is to be done."""


@dataclass(frozen=True)
class Blueprint:
    """A versioned list of steps and what happens at its ends, in the transaction of the last step.

    `on_success` and `on_undone` run in the run's tenant, and so does `on_node_left` when another
    node was taken and the old one, still the run's, is free. `makes` and `removes` name the service
    model whose orders, or terminations, it serves; `verb` with `serves` is what a person asks for
    of a service of that model. `wanted_in` are the ledger states in which the work makes sense,
    `shows` what the customer sees meanwhile. Work that `keeps_node` leaves it the service's own
    when it is undone; work without `risks_node` never blames it and is held for nobody: the server
    goes on as it was.
    """

    name: str
    version: int
    steps: tuple[Step, ...]
    on_success: Callable[[Run], None]
    on_undone: Callable[[Run], None]
    on_node_left: Callable[[Run], None] = _nothing
    replaces_nodes: bool = False
    makes: str = ""
    removes: str = ""
    verb: str = ""
    serves: str = ""
    wanted_in: tuple[str, ...] = (ServiceState.PROVISIONING,)
    shows: str = Condition.WORKING
    keeps_node: bool = False
    risks_node: bool = True
    cleans: str = ""  # the step that cleans the node, by doing or by being undone

    def step(self, position: int) -> Step:
        """The step at a position, from 0."""
        return self.steps[position]

    def named(self, name: str) -> Step:
        """The step of a name. Raises StopIteration when there is none."""
        return next(step for step in self.steps if step.name == name)

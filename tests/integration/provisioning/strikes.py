"""Faults that strike once at one call of one step, or kill the worker there."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from typing import Any
from uuid import UUID

from apps.core.errors import NodeFault, SiteUnreachable, Transient, Unknown
from apps.provisioning import blueprints
from apps.provisioning.adapters.fake import nothing
from apps.provisioning.engine import failpoints, runs
from apps.provisioning.engine.steps import Act, Blueprint, Outcome, Step, Work
from tests.integration.provisioning import world


@dataclass(frozen=True)
class Fault:
    """What goes wrong, how often, and whether the call has had its effect."""

    name: str
    error: Callable[[], BaseException] | None = None
    after: bool = False
    times: int = 1
    point: str = ""  # of the failpoint, where the worker dies between calls
    is_harmless: bool = True  # nothing may be lost by it but time
    is_decided: bool = True  # where it is held for a person, one has the step tried again


FAULTS = (
    Fault("refused", lambda: SiteUnreachable("connection refused")),
    Fault("error before effect", lambda: Transient("HTTP 500")),
    Fault("error after effect", lambda: Transient("HTTP 500"), after=True),
    Fault("time-out", lambda: SiteUnreachable("timed out"), after=True),
    Fault("hang before effect", lambda: failpoints.Killed("hard time limit")),
    Fault("hang after effect", lambda: failpoints.Killed("hard time limit"), after=True),
    Fault("wrong answer", lambda: Unknown("not what was asked"), after=True),
    Fault("wrong answer, nobody looks", lambda: ValueError("half of JSON"), after=True,
          is_harmless=False, is_decided=False),
    Fault("errors for ever", lambda: Transient("HTTP 500"), times=1_000_000, is_harmless=False,
          is_decided=False),
    Fault("node at fault", lambda: NodeFault("its disk is dead"), is_harmless=False),
    *(Fault(f"killed at {point}", point=point) for point in failpoints.GOING),
)  # fmt: skip


@dataclass(frozen=True)
class Place:
    """A call of a step, in one direction; without a call, the step itself."""

    blueprint: str
    version: int
    step: str
    undoing: bool
    call: str = ""

    def __str__(self) -> str:
        way = " undone" if self.undoing else ""
        return f"{self.blueprint}: {self.step}{way}" + (f", {self.call}" if self.call else "")


@dataclass
class Strike:
    """A fault at a place; `struck` counts."""

    place: Place
    fault: Fault
    struck: int = 0
    is_inside: bool = False

    @contextmanager
    def armed(self) -> Iterator[None]:
        """The fault strikes inside this block."""
        place, fault = self.place, self.fault
        with ExitStack() as stack:
            if fault.point:
                point = f"undo-{fault.point}" if place.undoing else fault.point
                armed = stack.enter_context(failpoints.rehearse(place.step, point))
                if fault.point == "claim":
                    stack.enter_context(_one_step_a_claim())
                yield
                self.struck += armed.has_fired
                return
            stack.enter_context(_wrapped(place, self._around))
            site = world.fake()
            site.on_call, site.on_return = self._on_call, self._on_return
            try:
                yield
            finally:
                site.on_call = site.on_return = nothing

    def _around(self, act: Act, work: Work) -> Outcome:
        if self.place.call:
            self.is_inside = True
            try:
                return act(work)
            finally:
                self.is_inside = False
        if not self.fault.after:
            self._strike()
        outcome = act(work)
        if self.fault.after:
            self._strike()
        return outcome

    def _on_call(self, call: str, _node: UUID | None) -> None:
        if self.is_inside and call == self.place.call and not self.fault.after:
            self._strike()

    def _on_return(self, call: str, _node: UUID | None) -> None:
        if self.is_inside and call == self.place.call and self.fault.after:
            self._strike()

    def _strike(self) -> None:
        if self.struck < self.fault.times and self.fault.error is not None:
            self.struck += 1
            raise self.fault.error()


@contextmanager
def _one_step_a_claim() -> Iterator[None]:
    """The worker's time is always up: it gives the run back after each step."""
    real = runs.BUDGET_SECONDS
    runs.BUDGET_SECONDS = -1.0
    try:
        yield
    finally:
        runs.BUDGET_SECONDS = real


@contextmanager
def _wrapped(place: Place, around: Callable[[Act, Work], Outcome]) -> Iterator[None]:
    """One step of a blueprint runs inside something else."""
    key = (place.blueprint, place.version)
    real = blueprints.ALL[key]
    blueprints.ALL[key] = _replaced(real, place, around)
    try:
        yield
    finally:
        blueprints.ALL[key] = real


def _replaced(real: Blueprint, place: Place, around: Callable[[Act, Work], Outcome]) -> Blueprint:
    def changed(step: Step) -> Step:
        act = step.undo if place.undoing else step.do
        if step.name != place.step or act is None:
            return step
        words: dict[str, Any] = {"undo" if place.undoing else "do": lambda work: around(act, work)}
        return replace(step, **words)

    return replace(real, steps=tuple(changed(step) for step in real.steps))


@contextmanager
def listening(name: str, version: int) -> Iterator[list[Place]]:
    """Notes each place a blueprint comes by, in order, each once."""
    heard: list[Place] = []
    inside: list[Place] = []

    def hear(call: str, _node: UUID | None) -> None:
        if inside:
            _once(heard, replace(inside[-1], call=call))

    def around(place: Place) -> Callable[[Act, Work], Outcome]:
        def run(act: Act, work: Work) -> Outcome:
            _once(heard, place)
            inside.append(place)
            try:
                return act(work)
            finally:
                inside.pop()

        return run

    with ExitStack() as stack:
        for step in blueprints.ALL[name, version].steps:
            for undoing in (False, True):
                place = Place(name, version, step.name, undoing)
                stack.enter_context(_wrapped(place, around(place)))
        world.fake().on_call = hear
        yield heard


def _once(heard: list[Place], place: Place) -> None:
    if place not in heard:
        heard.append(place)

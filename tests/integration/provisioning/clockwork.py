"""Moves a world on the fake site by what is due: no row is hurried, the clock jumps to it instead.

Whatever has no time at which it goes on stays where it is, and is found.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from uuid import UUID

from django.db import connection
from django.db.models import Min

from apps.core import clock
from apps.core.models import OutboxEvent
from apps.core.secrets import token_hash
from apps.orders.tasks import serve_deadlines, serve_queues
from apps.provisioning.engine import claims, failpoints, leaks, runs, watcher
from apps.provisioning.models import CallHome, Leak, Run
from apps.provisioning.services import receive_call_home
from apps.provisioning.states import MOVING, OPEN, RunStatus
from apps.tenancy.context import platform_context
from apps.tenancy.models import Tenant
from tests import invariants
from tests.integration.provisioning import world

LONGEST = timedelta(days=4)
TURNS = 600
MOMENT = timedelta(milliseconds=5)


@dataclass
class Clockwork:
    """One worker, one watcher, one sweeper and the customers' servers, for these tenants."""

    tenants: Iterable[Tenant]
    decide: Callable[[Run], None] | None = None  # what a person does about a held run
    each: Callable[[list[UUID]], None] | None = None  # advances what is due; else one worker does
    is_checking: bool = True
    calls_home: Callable[[Run], bool] = lambda _run: True
    deaths: int = 0
    problems: list[str] = field(default_factory=list)

    def turn(self) -> None:
        """Do all that is due, let the site finish what it began, then let time pass to what is
        next.
        """
        world.deliver()
        with platform_context():
            for site_id in watcher.due_sites():
                self.mortal(watcher.look, site_id)
            (self.each or self._each_twice)(claims.due_runs())
            runs.end_expired_holds()
            for leak_id in leaks.due_leaks():
                self.mortal(leaks.try_again, leak_id)
            serve_queues.run()
            serve_deadlines.run()
            self._decide()
        world.deliver()
        world.fake().settle()
        self._servers_call_home()
        if self.is_checking:
            self._check()
        self._let_time_pass()

    def _each_twice(self, due: list[UUID]) -> None:
        """The second message of a run finds it not due any more, or goes on where it stands."""
        for run_id in due:
            self.mortal(runs.advance, run_id)
            self.mortal(runs.advance, run_id)

    def mortal(self, job: Callable[[UUID], object], subject: UUID) -> None:
        """Do a worker's job; the worker may die of it."""
        try:
            job(subject)
        except failpoints.Killed:
            self.deaths += 1

    def rest(self) -> None:
        """Turn until no run is open and nothing is left behind, but for what waits for a person
        who never decides. What never comes to rest is a problem.
        """
        began = clock.now()
        for _turn in range(TURNS):
            self.turn()
            if self._is_at_rest():
                return
            if clock.now() - began > LONGEST:
                break
        with platform_context():
            for run in Run.objects.filter(status__in=OPEN):
                self.problems.append(f"stuck: {run} {run.status} at {run.position} {run.reason}")
            for leak in Leak.objects.filter(gone_at=None):
                self.problems.append(f"still left: {leak.what} {leak.detail}")

    def until(self, is_so: Callable[[], bool]) -> None:
        """Turn until something is so."""
        for _turn in range(TURNS):
            if is_so():
                return
            self.turn()
        raise AssertionError("it never came to that")

    # ------------------------------------------------------------------ inside
    def _is_at_rest(self) -> bool:
        with platform_context():
            waiting = OutboxEvent.objects.filter(delivered_at=None).exists()
            going_on = Run.objects.filter(status__in=OPEN)
            left = Leak.objects.filter(gone_at=None).exists()
            if self.decide is None:
                going_on = going_on.exclude(status=RunStatus.HELD, next_try_at=None)
                left = False
            return not waiting and not going_on.exists() and not left

    def _decide(self) -> None:
        if self.decide is not None:
            for run in Run.objects.filter(status=RunStatus.HELD):
                self.decide(run)

    def _servers_call_home(self) -> None:
        """What was deployed runs the script of its own drive, once."""
        with platform_context():
            for node in world.fake().nodes.values():
                if node.deployment is None or node.seen.provision_state != "active":
                    continue
                token = world.token_in(node.deployment)
                asked = CallHome.objects.filter(
                    token_hash=token_hash(token), revoked_at=None, received_at=None
                ).select_related("run")
                for home in asked:
                    if self.calls_home(home.run):
                        receive_call_home(
                            run_id=home.run_id, token=token, report=world.healthy(home.run),
                            remote="127.0.0.1",
                        )  # fmt: skip

    def _check(self) -> None:
        found = invariants.broken(self.tenants)
        if found and not self.problems:
            self.problems += found

    def _let_time_pass(self) -> None:
        with platform_context():
            now, due = clock.now(), _next_due()
        if due is not None and due > now:
            move_clock_by(due - now + MOMENT)


def _next_due() -> datetime | None:
    """When anything goes on by itself; what another holds goes on when its lease is over."""
    instants = []
    for run in Run.objects.filter(status__in=MOVING).exclude(next_try_at=None):
        instants.append(max(run.next_try_at, run.lease_until or run.next_try_at))
    instants += list(
        Run.objects.filter(status=RunStatus.HELD)
        .exclude(next_try_at=None)
        .values_list("next_try_at", flat=True)
    )
    for leak in Leak.objects.filter(gone_at=None).exclude(next_try_at=None):
        instants.append(max(leak.next_try_at, leak.lease_until or leak.next_try_at))
    events = OutboxEvent.objects.filter(delivered_at=None).aggregate(at=Min("next_try_at"))
    return min([*instants, *([events["at"]] if events["at"] else [])], default=None)


def move_clock_by(passed: timedelta) -> None:
    """Let time pass on this connection: to the end of its transaction, if there is one."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT set_config('neo.clock_offset', (coalesce(nullif("
            "current_setting('neo.clock_offset', true), ''), '0')::interval + %s)::text, %s)",
            [passed, connection.in_atomic_block],
        )

"""Work being done: runs, their steps and events, and what a person decides about them."""

from uuid import UUID

from django.db.models import QuerySet

from apps.api.operations import Asked, Endpoint, acts, gathers, lists, shows
from apps.api.serializers import provisioning as shapes
from apps.api.serializers.inventory import NeededReason
from apps.provisioning import selectors, services
from apps.provisioning.models import Run, RunEvent


class Runs(Endpoint):
    """Work being done."""

    @lists("listRuns", "run.view", shapes.RunSerializer, query=shapes.RunFilters)
    def get(self, asked: Asked) -> QuerySet[Run]:
        """List runs, newest first."""
        return selectors.runs().filter(**asked.query)


class RunItem(Endpoint):
    """One run."""

    @shows("showRun", "run.view", shapes.RunSerializer)
    def get(self, asked: Asked, run: UUID) -> Run:
        """Show a run."""
        return selectors.run_by_id(run)


class RunSteps(Endpoint):
    """The steps of a run."""

    @gathers("listRunSteps", "run.view", shapes.RunStepSerializer)
    def get(self, asked: Asked, run: UUID) -> list[selectors.StepView]:
        """List the steps of a run in their order, with the evidence they gathered."""
        return selectors.step_views(selectors.run_by_id(run))


class RunEvents(Endpoint):
    """What happened in a run."""

    @lists("listRunEvents", "run.view", shapes.RunEventSerializer, order=("-id",))
    def get(self, asked: Asked, run: UUID) -> QuerySet[RunEvent]:
        """List what happened in a run, newest first."""
        return selectors.run_by_id(run).events.all()


class RunRetry(Endpoint):
    """Lets a held run go on."""

    @acts("retryRun", "run.act", shapes.RunSerializer, body=NeededReason, status=202)
    def post(self, asked: Asked, run: UUID) -> Run:
        """Try the step again that a held run stands at."""
        services.retry_step(run_id=run, actor=asked.user, **asked.body)
        return selectors.run_by_id(run)


class RunUndo(Endpoint):
    """Gives a run up."""

    @acts("undoRun", "run.act", shapes.RunSerializer, body=NeededReason, status=202)
    def post(self, asked: Asked, run: UUID) -> Run:
        """Give a run up: everything it made is taken back, nothing is charged."""
        services.undo_run(run_id=run, actor=asked.user, **asked.body)
        return selectors.run_by_id(run)


class RunSkip(Endpoint):
    """Goes on behind a step."""

    @acts("skipRunStep", "run.act", shapes.RunSerializer, body=NeededReason, status=202)
    def post(self, asked: Asked, run: UUID) -> Run:
        """Let the step a run stands at count as done; refused for what must be real."""
        services.skip_step(run_id=run, actor=asked.user, **asked.body)
        return selectors.run_by_id(run)


class RunReplacement(Endpoint):
    """Takes another node."""

    @acts("replaceRunNode", "run.act", shapes.RunSerializer, body=shapes.Replacing, status=202)
    def post(self, asked: Asked, run: UUID) -> Run:
        """Undo what was done on the node, then take another one for the same service."""
        services.replace_node(run_id=run, actor=asked.user, **asked.body)
        return selectors.run_by_id(run)


class RunTakeover(Endpoint):
    """Holds a run under a name."""

    @acts("takeOverRun", "run.act", shapes.RunSerializer, body=NeededReason, status=202)
    def post(self, asked: Asked, run: UUID) -> Run:
        """Hold a run without a timer until its new owner hands it back."""
        services.take_over(run_id=run, actor=asked.user, **asked.body)
        return selectors.run_by_id(run)

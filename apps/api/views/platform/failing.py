"""When work fails: who vouches for what, leaks, and what follows each kind of failure."""

from uuid import UUID

from django.db.models import QuerySet

from apps.api.operations import Asked, Endpoint, acts, gathers, lists, shows
from apps.api.serializers import provisioning as shapes
from apps.api.serializers.inventory import NeededReason
from apps.provisioning import selectors, services
from apps.provisioning.models import FailurePolicy, Leak, Override


class RunOverrides(Endpoint):
    """What people vouched for in a run."""

    @gathers("listRunOverrides", "run.view", shapes.OverrideSerializer)
    def get(self, asked: Asked, run: UUID) -> QuerySet[Override]:
        """List what people vouched for in a run, oldest first."""
        return selectors.run_by_id(run).overrides.order_by("asked_at", "id")

    @acts(
        "askOverride", "run.override", shapes.OverrideSerializer, body=shapes.Vouching, status=201
    )
    def post(self, asked: Asked, run: UUID) -> Override:
        """Vouch for readiness or a cleaning; a second operator has to confirm within 24 hours."""
        return services.ask_override(run_id=run, actor=asked.user, **asked.body)


class OverrideConfirmation(Endpoint):
    """The second operator's yes."""

    @acts("confirmOverride", "run.override", shapes.OverrideSerializer, body=NeededReason)
    def post(self, asked: Asked, override: UUID) -> Override:
        """Vouch together with who asked: the step counts as proven by two."""
        return services.confirm_override(override_id=override, actor=asked.user, **asked.body)


class OverrideRefusal(Endpoint):
    """The second operator's no."""

    @acts("refuseOverride", "run.override", shapes.OverrideSerializer, body=NeededReason)
    def post(self, asked: Asked, override: UUID) -> Override:
        """Refuse; everything stays as it is. Who asked takes it back the same way."""
        return services.refuse_override(override_id=override, actor=asked.user, **asked.body)


class Leaks(Endpoint):
    """What could not be undone."""

    @lists("listLeaks", "run.view", shapes.LeakSerializer, query=shapes.LeakFilters,
           order=("-since", "-id"))  # fmt: skip
    def get(self, asked: Asked) -> QuerySet[Leak]:
        """List leaks, newest first, with their age, price and owner."""
        return selectors.leaks().filter(**asked.query)


class LeakAssignment(Endpoint):
    """Looks after a leak."""

    @acts("assignLeak", "run.act", shapes.LeakSerializer)
    def post(self, asked: Asked, leak: UUID) -> Leak:
        """Look after a leak from now on."""
        return services.assign_leak(leak_id=leak, actor=asked.user)


class LeakRetry(Endpoint):
    """Tries a leak now."""

    @acts("retryLeak", "run.act", shapes.LeakSerializer, body=NeededReason, status=202)
    def post(self, asked: Asked, leak: UUID) -> Leak:
        """Try to undo it now instead of at its time."""
        return services.retry_leak(leak_id=leak, actor=asked.user, **asked.body)


class LeakClosing(Endpoint):
    """Closes a leak."""

    @acts("closeLeak", "run.act", shapes.LeakSerializer, body=NeededReason)
    def post(self, asked: Asked, leak: UUID) -> Leak:
        """Close what was seen to by hand; its node stays in quarantine."""
        return services.close_leak(leak_id=leak, actor=asked.user, **asked.body)


class FailurePolicies(Endpoint):
    """What follows failures."""

    @gathers("listFailurePolicies", "run.view", shapes.FailurePolicySerializer)
    def get(self, asked: Asked) -> QuerySet[FailurePolicy]:
        """List every policy somebody has set, the widest first."""
        return selectors.failure_policies()

    @acts("setFailurePolicy", "site.manage", shapes.FailurePolicySerializer,
          body=shapes.PolicySetting)  # fmt: skip
    def put(self, asked: Asked) -> FailurePolicy:
        """Decide what follows failures by default, or at a site, for an offering, or both."""
        body = dict(asked.body)
        site, sku = body.pop("site", None), body.pop("offering", "")
        return services.set_policy(site=site, sku=sku, actor=asked.user, **body)


class EffectivePolicy(Endpoint):
    """What applies somewhere."""

    @shows("showEffectiveFailurePolicy", "run.view", shapes.EffectivePolicySerializer,
           query=shapes.PolicyPlace)  # fmt: skip
    def get(self, asked: Asked) -> selectors.EffectivePolicy:
        """Show what applies to an offering at a site, and where that was decided."""
        site = asked.query.get("site")
        return selectors.effective_policy(
            site=site.pk if site else None, sku=asked.query.get("offering", "")
        )


class FailurePolicyRemoval(Endpoint):
    """Removes an exception."""

    @acts("removeFailurePolicy", "site.manage", None, body=NeededReason)
    def post(self, asked: Asked, policy: UUID) -> None:
        """Let what applies more widely apply there, too."""
        services.remove_policy(policy_id=policy, actor=asked.user, **asked.body)

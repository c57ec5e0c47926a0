"""Where the sites are not as we believe: findings, their fixes, the looks that found them."""

from typing import Any
from uuid import UUID

from django.db.models import QuerySet

from apps.api.operations import Asked, Endpoint, acts, gathers, lists, shows
from apps.api.serializers import reality as shapes
from apps.api.serializers.inventory import NeededReason
from apps.inventory import selectors as inventory
from apps.provisioning import findings, tasks
from apps.provisioning import services as provisioning
from apps.provisioning.models import Finding, SiteCheck, SiteLook


class Findings(Endpoint):
    """Where belief and reality differ."""

    @lists(
        "listFindings",
        "node.view",
        shapes.FindingSerializer,
        query=shapes.FindingFilters,
        order=("-last_seen_at", "-id"),
    )
    def get(self, asked: Asked) -> QuerySet[Finding]:
        """List findings that two looks agree on, last seen first."""
        return findings.findings().filter(**asked.query)


class FindingItem(Endpoint):
    """One finding."""

    @shows("showFinding", "node.view", shapes.FindingSerializer)
    def get(self, asked: Asked, finding: UUID) -> Finding:
        """Show a finding."""
        return findings.finding_by_id(finding)


class FindingFix(Endpoint):
    """Begins the fix."""

    @acts(
        "fixFinding", "node.act", shapes.FindingSerializer, body=shapes.OptionalReason, status=202
    )
    def post(self, asked: Asked, finding: UUID) -> Finding:
        """Begin the one fix of a finding; a later look at the site confirms it."""
        findings.fix_finding(finding_id=finding, actor=asked.user, **asked.body)
        tasks.wake_fix(finding)
        return findings.finding_by_id(finding)


class FindingAcceptance(Endpoint):
    """Lets a finding be."""

    @acts("acceptFinding", "node.act", shapes.FindingSerializer, body=NeededReason)
    def post(self, asked: Asked, finding: UUID) -> Finding:
        """Accept a finding with a reason; it comes back when it changes."""
        findings.accept_finding(finding_id=finding, actor=asked.user, **asked.body)
        return findings.finding_by_id(finding)


class SiteLookItem(Endpoint):
    """The comparison of a site with what we believe of it."""

    @shows("showSiteLook", "node.view", shapes.SiteLookSerializer)
    def get(self, asked: Asked, site: str) -> SiteLook:
        """Show when the site was last compared, how long it took and what it came to."""
        return findings.look_of(inventory.site_by_code(site))

    @acts("compareSite", "site.manage", shapes.SiteLookSerializer, status=202)
    def post(self, asked: Asked, site: str) -> SiteLook:
        """Let the site be compared now."""
        found = inventory.site_by_code(site)
        findings.look_now(site=found, actor=asked.user)
        return findings.look_of(found)


class FixPolicies(Endpoint):
    """What is fixed without a person at a site."""

    @gathers("listFixPolicies", "node.view", shapes.FixPolicySerializer)
    def get(self, asked: Asked, site: str) -> list[dict[str, Any]]:
        """List for every kind of finding whether it is fixed without a person."""
        decided = findings.policies(inventory.site_by_code(site))
        return [{"kind": kind, "is_automatic": value} for kind, value in decided.items()]

    @acts("setFixPolicy", "site.manage", shapes.FixPolicySerializer, body=shapes.NewFixPolicy)
    def put(self, asked: Asked, site: str) -> Any:
        """Decide for one kind of finding whether it is fixed without a person."""
        found = inventory.site_by_code(site)
        return findings.set_fix_policy(site=found, actor=asked.user, **asked.body)


class SiteValidation(Endpoint):
    """Asks a site whether it can be worked with."""

    @acts(
        "validateSite",
        "site.manage",
        shapes.SiteCheckSerializer,
        body=shapes.WithTrial,
        is_keyed=False,
    )
    def post(self, asked: Asked, site: str) -> SiteCheck:
        """Ask a site, component by component, what it needs to sell; a trial goes on by itself."""
        found = inventory.site_by_code(site)
        return provisioning.validate_site(site=found, actor=asked.user, **asked.body)


class SiteChecks(Endpoint):
    """The checks of a site."""

    @lists("listSiteChecks", "node.view", shapes.SiteCheckSerializer, order=("-started_at", "-id"))
    def get(self, asked: Asked, site: str) -> QuerySet[SiteCheck]:
        """List the checks of a site, newest first."""
        return inventory.site_by_code(site).checks.select_related("site")


class SiteCheckItem(Endpoint):
    """One check."""

    @shows("showSiteCheck", "node.view", shapes.SiteCheckSerializer)
    def get(self, asked: Asked, check: UUID) -> SiteCheck:
        """Show a check with all its rows."""
        return SiteCheck.objects.select_related("site").get(pk=check)

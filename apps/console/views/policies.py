"""Failure policies: what follows a failure, by default and by site and offering."""

from typing import Any
from uuid import UUID

from django import forms
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.utils.translation import gettext as _
from django.views.decorators.http import require_POST

from apps.accounts.access import needs, person
from apps.catalog.selectors import all_offerings
from apps.console.actions import Action, reason_of
from apps.console.forms import PolicyForm
from apps.console.views.runs import site_choices
from apps.core import filters, show
from apps.core.answers import blame, changed, drawn
from apps.core.errors import AppError, NotFound
from apps.core.tables import Column, Row, Table
from apps.inventory.models import Site
from apps.provisioning import selectors, services
from apps.provisioning.models import FailurePolicy
from apps.provisioning.services.policies import where
from apps.provisioning.words import DECISIONS, FIGURES, LABELS, value_of


@needs("run.view")
def policy_list(request: HttpRequest) -> HttpResponse:
    """What applies at a site for an offering and where it comes from; all that was decided."""
    site = filters.choice(request, "site", _("Site"), _("Every site"), site_choices())
    skus = [(sku, sku) for sku in all_offerings().values_list("sku", flat=True)]
    offering = filters.choice(request, "offering", _("Offering"), _("Every offering"), skus)
    effective = selectors.effective_policy(
        site=UUID(site.value) if site.value else None, sku=offering.value
    )
    found = filters.Listing(_effective_table(effective), [site, offering])
    policies = list(selectors.failure_policies())
    may = person(request).may("site.manage")
    context = {
        "listing": found,
        "policies": _policy_table(policies),
        "edit_url": _edit_url(site.value, offering.value) if may else "",
        "removals": [_removal(one) for one in policies if one.site_id or one.sku] if may else [],
    }
    return drawn(request, "console/policy_list.html", context)


@needs("site.manage")
def policy_edit(request: HttpRequest) -> HttpResponse:
    """Decide what follows failures somewhere, beginning with what applies there now."""
    site, sku = _place(request)
    effective = selectors.effective_policy(site=site.pk if site else None, sku=sku)
    initial = {name: getattr(effective.policy, name) for name in (*DECISIONS, *FIGURES)}
    form = PolicyForm(request.POST or None, initial=initial)
    if request.method == "POST" and form.is_valid():
        data = dict(form.cleaned_data)
        reason = data.pop("reason")
        try:
            services.set_policy(site=site, sku=sku, actor=person(request), reason=reason, **data)
        except AppError as error:
            blame(form, error)
        else:
            return changed(request, reverse("console:policy_list"), _("The policy is set."))
    context = {
        "form": form,
        "where": where(FailurePolicy(site=site, sku=sku)),
        "source": _source(effective),
    }
    status = 422 if form.errors else 200
    return render(request, "console/policy_edit.html", context, status=status)


@require_POST
@needs("site.manage")
def policy_remove(request: HttpRequest, policy_id: UUID) -> HttpResponse:
    """Let what applies more widely apply here, too."""
    services.remove_policy(policy_id=policy_id, actor=person(request), reason=reason_of(request))
    return changed(request, reverse("console:policy_list"), _("The policy is removed."))


def _place(request: HttpRequest) -> tuple[Site | None, str]:
    """The site and the offering of the address. Raises NotFound."""
    code, sku = request.GET.get("site", ""), request.GET.get("offering", "")
    try:
        site = Site.objects.get(pk=code) if code else None
    except (Site.DoesNotExist, forms.ValidationError, ValueError) as error:
        raise NotFound(field="site") from error
    if sku and not all_offerings().filter(sku=sku).exists():
        raise NotFound(field="offering")
    return site, sku


def _edit_url(site: str, sku: str) -> str:
    return f"{reverse('console:policy_edit')}?site={site}&offering={sku}"


def _source(effective: selectors.EffectivePolicy) -> str:
    """Where what applies was decided."""
    return where(effective.source) if effective.source else _("default")


def _effective_table(effective: selectors.EffectivePolicy) -> Table:
    columns = [Column(_("If this happens")), Column(_("Then"), wrap=True), Column(_("Decided for"))]
    source = _source(effective)
    rows = [
        Row([LABELS[name], value_of(effective.policy, name), source])
        for name in (*DECISIONS, *FIGURES)
    ]
    return Table(columns, rows, _("What applies"))


def _policy_table(policies: list[FailurePolicy]) -> Table:
    columns = [
        Column(_("Where")),
        *(Column(LABELS[name], hide="md", wrap=True) for name in DECISIONS),
        Column(LABELS["hold_hours"], number=True, hide="lg"),
    ]
    rows = [_policy_row(policy) for policy in policies]
    if not any(policy.site_id is None and not policy.sku for policy in policies):
        rows.insert(0, _policy_row(FailurePolicy()))
    return Table(columns, rows, _("Failure policies"))


def _policy_row(policy: FailurePolicy) -> Row:
    url = _edit_url(str(policy.site_id or ""), policy.sku)
    cells: list[Any] = [value_of(policy, name) for name in (*DECISIONS, "hold_hours")]
    return Row([show.link(where(policy), url), *cells])


def _removal(policy: FailurePolicy) -> Action:
    return Action(
        f"remove-{policy.pk}",
        _("Remove “{where}”").format(where=where(policy)),
        reverse("console:policy_remove", args=[policy.pk]),
        _("What applies more widely applies here, too, from the next failure on."),
        "danger",
    )

"""Approvals: what waits for an answer, what was answered, and the policy that asks."""

from dataclasses import dataclass
from typing import Any
from uuid import UUID

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.utils.translation import gettext as _
from django.views.decorators.http import require_GET, require_POST

from apps.accounts.access import needs, person
from apps.core.paging import paginate
from apps.orders import causes, selectors, services
from apps.orders.models import Approval
from apps.orders.names import Names, servers
from apps.orders.states import ApprovalStatus
from apps.portal import cells
from apps.portal.answers import cleaned, go
from apps.portal.forms import PolicyForm


@dataclass(frozen=True)
class Question:
    """An open question as the page shows it, with the ids of its dialogs."""

    approval: Approval
    what: str
    cost: str
    link: Any

    @property
    def rule(self) -> str:
        """Why it was asked."""
        return causes.rule_in_words(self.approval.rule)

    @property
    def number(self) -> str:
        """What people call the order or reservation."""
        return str(self.approval.order or self.approval.reservation)

    @property
    def approve_dialog(self) -> str:
        """The id of the dialog that says yes."""
        return f"approve-{self.approval.pk}"

    @property
    def refuse_dialog(self) -> str:
        """The id of the dialog that says no."""
        return f"refuse-{self.approval.pk}"


@require_GET
@needs("order.approve")
def approval_list(request: HttpRequest) -> HttpResponse:
    """Questions that wait, the one that expires first above; the answers; the policy."""
    answered = selectors.approvals().exclude(status=ApprovalStatus.WAITING)
    page = paginate(answered, keys=("-asked_at", "-id"), cursor=request.GET.get("cursor", ""))
    policy = selectors.order_policy()
    names = Names()
    context = {
        "questions": [_question(one, names) for one in selectors.approvals_waiting()],
        "table": cells.approval_table(page.items),
        "page": page,
        "policy": policy,
        "form": PolicyForm(
            initial={name: getattr(policy, name) for name in PolicyForm.base_fields}
        ),
    }
    return render(request, "portal/approvals.html", context)


def _question(approval: Approval, names: Names) -> Question:
    thing = approval.order or approval.reservation
    assert thing is not None  # noqa: S101 - the database says so; tells the type checker
    what = f"{servers(thing.quantity, names.offering(thing))} · {names.site(thing.site_code)}"
    return Question(approval, what, cells.approval_cost(approval), cells.approval_link(approval))


@require_POST
@needs("order.approve")
def approval_approve(request: HttpRequest, approval_id: UUID) -> HttpResponse:
    """Say yes."""
    found = services.approve(
        approval_id=approval_id, actor=person(request), reason=request.POST.get("reason", "")
    )
    told = _("{number} is approved").format(number=found.order or found.reservation)
    return go(request, _after(request, found), told)


@require_POST
@needs("order.approve")
def approval_refuse(request: HttpRequest, approval_id: UUID) -> HttpResponse:
    """Say no, and why."""
    found = services.refuse_approval(
        approval_id=approval_id, actor=person(request), reason=request.POST.get("reason", "")
    )
    told = _("{number} was refused").format(number=found.order or found.reservation)
    return go(request, _after(request, found), told)


@require_POST
@needs("order.approve")
def order_policy(request: HttpRequest) -> HttpResponse:
    """Change the rules."""
    services.set_order_policy(**cleaned(PolicyForm(request.POST)), actor=person(request))
    return go(request, reverse("portal:approvals"), _("Saved."))


def _after(request: HttpRequest, approval: Approval) -> str:
    """Back to the order when it was answered there."""
    if request.POST.get("from") == "order" and approval.order_id:
        return reverse("portal:order_detail", args=[approval.order_id])
    return reverse("portal:approvals")

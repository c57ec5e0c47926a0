"""The audit trail, and what people were told."""

from uuid import UUID

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.utils.translation import gettext as _
from django.views.decorators.http import require_GET, require_POST

from apps.accounts.access import needs, person
from apps.audit import selectors as audit_trail
from apps.core import filters
from apps.core.paging import paginate
from apps.notices import selectors, services
from apps.portal import cells
from apps.portal.answers import go


@require_GET
@needs("audit.view")
def audit(request: HttpRequest) -> HttpResponse:
    """Who did what, when, from where, newest first."""
    wanted = filters.text(request, _("Search"))
    page = paginate(
        audit_trail.entries(text=wanted.value),
        keys=("-id",),
        cursor=request.GET.get("cursor", ""),
    )
    context = {
        "table": cells.audit_table(page.items, narrowed=bool(wanted.value)),
        "page": page,
        "wanted": wanted,
    }
    return render(request, "portal/audit.html", context)


@require_GET
@needs("service.view")
def notices(request: HttpRequest) -> HttpResponse:
    """What this person was told, newest first."""
    page = paginate(
        selectors.notices_of(person(request).pk),
        keys=("-id",),
        cursor=request.GET.get("cursor", ""),
        size=20,
    )
    return render(request, "portal/notices.html", {"page": page})


@require_POST
@needs("service.view")
def notice_read(request: HttpRequest, notice_id: UUID) -> HttpResponse:
    """Take a notice as read, and follow it when it leads somewhere."""
    notice = services.mark_read(notice_id=notice_id, person_id=person(request).pk)
    follow = request.POST.get("follow") == "yes" and notice.link.startswith("/")
    return go(request, notice.link if follow else reverse("portal:notices"))

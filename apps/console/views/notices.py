"""What all staff were told, and what this person was told."""

from uuid import UUID

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.utils.translation import gettext as _
from django.views.decorators.http import require_POST

from apps.accounts.access import needs, person
from apps.core.answers import changed
from apps.core.paging import paginate
from apps.notices import selectors, services


@needs("capacity.view")
def notice_list(request: HttpRequest) -> HttpResponse:
    """Notices, newest first; unread ones stand out."""
    user = person(request)
    found = selectors.operator_notices() | selectors.notices_of(user.pk)
    page = paginate(found, keys=("-id",), cursor=request.GET.get("cursor", ""))
    return render(request, "console/notices.html", {"page": page})


@require_POST
@needs("capacity.view")
def notice_read(request: HttpRequest, notice_id: UUID) -> HttpResponse:
    """Mark a notice as read."""
    user = person(request)
    is_mine = selectors.notices_of(user.pk).filter(pk=notice_id).exists()
    services.mark_read(notice_id=notice_id, person_id=user.pk if is_mine else None)
    return changed(request, reverse("console:notices"), _("Marked as read."))

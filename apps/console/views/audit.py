"""The platform's audit trail."""

from typing import Any

from django.http import HttpRequest, HttpResponse
from django.utils.html import format_html
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from apps.accounts.access import needs
from apps.audit import sealing, words
from apps.audit import selectors as audit
from apps.audit.models import AuditEntry
from apps.console.views.runs import plain
from apps.core import filters, show
from apps.core.answers import drawn
from apps.core.paging import paginate
from apps.core.tables import Column, Empty, Row, Table
from apps.provisioning import reasons


@needs("audit.view")
def audit_list(request: HttpRequest) -> HttpResponse:
    """Who did what, when, from where, why; on request the chain of seals is checked."""
    text = filters.text(request, _("Who, what, on what, why"))
    subject = filters.text(request, _("Kind of thing"), name="subject")
    actor = filters.text(request, _("What was done"), name="action")
    page = paginate(
        audit.entries(text=text.value, subject_type=subject.value, action=actor.value),
        keys=("-id",),
        cursor=request.GET.get("cursor", ""),
    )
    found = filters.Listing(audit_table(page.items), [text, actor, subject], page.next)
    context: dict[str, Any] = {"listing": found}
    if request.GET.get("verify"):
        context["verdict"] = sealing.verify()
    return drawn(request, "console/audit.html", context)


def audit_table(entries: list[AuditEntry]) -> Table:
    """Audit entries, newest first."""
    columns = [
        Column(_("When")),
        Column(_("Who")),
        Column(_("What")),
        Column(_("On what"), wrap=True),
        Column(_("Why and what changed"), wrap=True, hide="md"),
        Column(_("From"), hide="lg"),
    ]
    rows = [
        Row(
            [
                show.instant(entry.at, seconds=True),
                show.stacked(entry.actor_name, words.side(entry.actor_side)),
                words.action(entry.action)
                if entry.result == "done"
                else show.stacked(words.action(entry.action), words.result(entry.result)),
                show.stacked(entry.subject_label or entry.subject_id, entry.subject_type),
                show.stacked(reasons.in_words(entry.reason) or show.NOTHING, _difference(entry)),
                show.stacked(entry.ip or show.NOTHING, entry.request_id),
            ],
            tone="" if entry.result == "done" else "yellow",
        )
        for entry in entries
    ]
    return Table(columns, rows, _("Audit trail"), empty=Empty(_("No entries"), icon="history"))


def _difference(entry: AuditEntry) -> Any:
    before, after = entry.before or {}, entry.after or {}
    names = [n for n in dict.fromkeys([*before, *after]) if before.get(n) != after.get(n)]
    if not names:
        return ""
    told = ngettext("{n} value", "{n} values", len(names)).format(n=len(names))
    lines = plain([f"{n}: {plain(before.get(n))} → {plain(after.get(n))}" for n in names])
    return format_html("<details><summary>{}</summary>{}</details>", told, lines)

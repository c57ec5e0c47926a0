"""What needs a person now: one page, most urgent first; it renews itself."""

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils.translation import gettext as _

from apps.accounts.access import needs
from apps.console import work
from apps.core import clock, show
from apps.core.live import is_live, live, live_answer
from apps.core.tables import Column, Empty, Row, Table

RED = ("site", "held", "override", "leak")


@needs("capacity.view")
def work_list(request: HttpRequest) -> HttpResponse:
    """Everything that waits for a person, with its age and where to go."""
    found = work.items()
    numbers = {kind: sum(one.kind == kind for one in found) for kind in work.KINDS}
    context = {
        "table": _table(found),
        "numbers": [
            (kind, label, numbers[kind]) for kind, label in work.KINDS.items() if numbers[kind]
        ],
    }
    part = live(request, busy=False)
    if is_live(request):
        return live_answer(request, "console/work_list.html#live", context, part)
    return render(request, "console/work_list.html", {**context, "part": part})


def _table(found: list[work.Item]) -> Table:
    now = clock.now()
    columns = [
        Column(_("What")),
        Column(_("Why"), wrap=True),
        Column(_("Where"), wrap=True, hide="sm"),
        Column(_("For"), number=True),
        Column(_("Since"), hide="md"),
    ]
    rows = [
        Row(
            [
                show.link(one.label, one.url),
                one.what or show.NOTHING,
                one.where,
                show.duration((now - one.since).total_seconds() // 60 * 60)
                if one.since
                else show.NOTHING,
                show.instant(one.since),
            ],
            tone="red" if one.kind in RED else "yellow",
        )
        for one in found
    ]
    empty = Empty(_("Nothing needs a person now."), icon="circle-check")
    return Table(columns, rows, _("What needs a person"), empty=empty)

"""Leaks: what could not be undone, for how long, at what price, who looks after it."""

from collections.abc import Callable, Iterable
from datetime import timedelta
from typing import Any
from uuid import UUID

from django.http import HttpRequest, HttpResponse
from django.urls import reverse
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from django.views.decorators.http import require_POST

from apps.accounts.access import needs, person
from apps.console import cells, selectors
from apps.console.actions import Action, reason_of
from apps.core import clock, filters, show
from apps.core.answers import changed, drawn
from apps.core.errors import NotFound
from apps.core.paging import paginate
from apps.core.tables import Column, Empty, Row, Table
from apps.provisioning import services
from apps.provisioning.models import Leak
from apps.provisioning.selectors import cost_of_leak

STANDS = (("gone", gettext_lazy("Gone")), ("all", gettext_lazy("Open and gone")))


@needs("run.view")
def leak_list(request: HttpRequest) -> HttpResponse:
    """Leaks, the oldest first; the open ones unless asked otherwise."""
    stand = filters.choice(request, "stand", _("Status"), _("Open"), STANDS)
    text = filters.text(request, _("Thing, node, order or owner"))
    is_open = {"": True, "gone": False}.get(stand.value)
    page = paginate(
        selectors.leaks(is_open=is_open, text=text.value),
        keys=("since", "id"),
        cursor=request.GET.get("cursor", ""),
    )
    actions = leak_actions(page.items) if person(request).may("run.act") else []
    table = leak_table(page.items, may_act=bool(actions))
    context = {
        "listing": filters.Listing(table, [stand, text], page.next),
        "per_hour": [show.money(amount) for amount in selectors.leaks_per_hour()],
        "actions": actions,
    }
    return drawn(request, "console/leak_list.html", context)


@require_POST
@needs("run.act")
def leak_act(request: HttpRequest, leak_id: UUID, verb: str) -> HttpResponse:
    """Look after a leak, try it now, or close it: in the person's name."""
    actor = person(request)
    decisions: dict[str, tuple[Callable[[], Any], str]] = {
        "assign": (
            lambda: services.assign_leak(leak_id=leak_id, actor=actor),
            _("You look after this leak."),
        ),
        "retry": (
            lambda: services.retry_leak(leak_id=leak_id, actor=actor, reason=reason_of(request)),
            _("It is tried again in a moment."),
        ),
        "close": (
            lambda: services.close_leak(leak_id=leak_id, actor=actor, reason=reason_of(request)),
            _("The leak is closed."),
        ),
    }
    if verb not in decisions:
        raise NotFound()
    act, message = decisions[verb]
    act()
    return changed(request, reverse("console:leak_list"), message)


def leak_table(leaks: Iterable[Any], *, may_act: bool = False) -> Table:
    """Leaks with age, price and owner; with buttons for those who may act."""
    now = clock.now().replace(second=0, microsecond=0)  # the page is new once a minute at most
    columns = [
        Column(_("What is left"), wrap=True),
        Column(_("Run"), hide="md"),
        Column(_("For"), number=True),
        Column(_("So far"), number=True),
        Column(_("Looked after by"), hide="md"),
        Column(_("Next try"), hide="lg"),
        *([Column("")] if may_act else []),
    ]
    rows = [
        Row(
            [
                show.stacked(leak.what, leak.gone_how or leak.detail or show.NOTHING),
                show.stacked(cells.run_link(leak.run), leak.run.order_number),
                show.duration(max((leak.gone_at or now) - leak.since, timedelta(0))),
                show.stacked(
                    show.money(cost_of_leak(leak, at=now)),
                    _("{amount} per hour").format(
                        amount=show.money(leak.price_per_hour, leak.currency)
                    ),
                ),
                leak.owner or _("nobody"),
                show.stacked(
                    show.instant(leak.next_try_at),
                    _("tried {n} times").format(n=leak.attempts),
                ),
                *([_buttons(leak)] if may_act else []),
            ],
            id=str(leak.pk),
            tone="" if leak.gone_at else "red",
        )
        for leak in leaks
    ]
    empty = Empty(_("No leaks"), _("All that had to be undone was undone."), icon="circle-check")
    return Table(columns, rows, _("Leaks"), empty=empty)


def leak_actions(leaks: Iterable[Leak]) -> list[Action]:
    """The dialogs behind the buttons of the open leaks."""
    found = []
    for leak in leaks:
        if leak.gone_at is None:
            found += [_action(leak, *words) for words in _words()]
    return found


def _words() -> list[tuple[str, str, str, str, str]]:
    return [
        ("assign", _("Assign to me"), _("Others see that you look after it."), "primary", ""),
        (
            "retry",
            _("Try now"),
            _("Does not wait for the time of the next try."),
            "primary",
            "required",
        ),
        (
            "close",
            _("Close"),
            _(
                "For what was seen to by hand: it is not tried again. The node stays in "
                "quarantine until it is proven clean, or two operators vouch for it."
            ),
            "danger",
            "required",
        ),
    ]


def _action(leak: Leak, verb: str, label: str, text: str, tone: str, reason: str) -> Action:
    url = reverse("console:leak_act", args=[leak.pk, verb])
    return Action(f"{verb}-{leak.pk}", label, url, text, tone, reason)


def _buttons(leak: Leak) -> SafeString:
    if leak.gone_at is not None:
        return SafeString("")
    buttons = format_html_join(
        "",
        '<button type="button" class="btn btn-sm" data-opens="{}-{}">{}</button>',
        ((verb, leak.pk, label) for verb, label, *_more in _words()),
    )
    return format_html('<div class="btn-list flex-nowrap">{}</div>', buttons)

"""Reservations, loans and alternatives as a customer reads them."""

from collections.abc import Iterable
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from django.urls import reverse
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from apps.catalog.models import Offering
from apps.core import instants, show
from apps.core.tables import Column, Empty, Row, Table, Term
from apps.inventory import selectors as inventory
from apps.inventory.models import Site
from apps.orders.alternatives import Alternative, Kind, alternatives
from apps.orders.models import Quote, Reservation
from apps.orders.names import Names, servers
from apps.orders.states import ReservationStatus

TONES = {
    ReservationStatus.REQUESTED: "placed",
    ReservationStatus.BOOKED: "scheduled",
    ReservationStatus.ACTIVE: "active",
    ReservationStatus.SUSPENDED: "suspended",
    ReservationStatus.REFUSED: "refused",
    ReservationStatus.CANCELLED: "cancelled",
    ReservationStatus.EXPIRED: "closed",
}


def offering_words(offering: Offering) -> str:
    """An offering in the reader's language."""
    return show.local(offering, "name")


def site_words(site: Site) -> str:
    """A site in the reader's language."""
    return show.local(site, "name")


def reservation_badge(reservation: Reservation) -> SafeString:
    """Its status, coloured."""
    return show.badge(
        TONES[ReservationStatus(reservation.status)], reservation.get_status_display()
    )


def reservation_link(reservation: Reservation) -> SafeString:
    """Its number, leading to its page."""
    url = reverse("portal:reservation_detail", args=[reservation.pk])
    return show.link(reservation.number, url)


def reservation_table(reservations: Iterable[Reservation]) -> Table:
    """Reservations: number and name, status, what, from when to when, the project."""
    names = Names()
    return Table(
        caption=_("Reservations"),
        columns=[
            Column(_("Reservation")),
            Column(_("Status")),
            Column(_("Servers")),
            Column(_("From"), hide="sm"),
            Column(_("Until"), hide="sm"),
            Column(_("Project"), hide="md"),
        ],
        rows=[
            Row(
                [
                    show.stacked(reservation_link(one), one.name),
                    reservation_badge(one),
                    show.stacked(
                        servers(one.quantity, names.offering(one)), names.site(one.site_code)
                    ),
                    show.instant(one.starts_at),
                    show.instant(one.ends_at),
                    one.project.name,
                ],
                id=str(one.pk),
            )
            for one in reservations
        ],
        empty=Empty(
            _("Nothing is reserved"),
            _("A reservation holds servers for a term, at one price, charged used or not."),
            icon="calendar",
        ),
    )


def reservation_terms(reservation: Reservation, used: int) -> list[Term]:
    """What was agreed, and what is used of it."""
    names = Names()
    price = show.money(reservation.unit_price, reservation.currency)
    return [
        Term(
            _("What"), servers(reservation.quantity, names.offering(reservation)), reservation.sku
        ),
        Term(_("Where"), names.site(reservation.site_code), reservation.site_code),
        Term(_("From"), show.instant(reservation.starts_at)),
        Term(_("Until"), show.instant(reservation.ends_at)),
        Term(
            _("In use"),
            _("{used} of {all} servers").format(used=used, all=reservation.quantity),
        ),
        Term(
            _("Unit price"),
            _("{price} per GPU-hour").format(price=price),
            _("fixed to the end of the term"),
        ),
        Term(_("Charged"), _("the whole term, used or not")),
        Term(_("Project"), reservation.project.name),
        Term(_("Placed by"), reservation.placed_by.name, show.instant(reservation.created_at)),
    ]


def booking_terms(quote: Quote) -> list[Term]:
    """Every term a reservation's quote freezes."""
    names = Names()
    gpus = quote.gpus_each * quote.quantity
    vat = (quote.vat_rate * 100).normalize()
    contract = quote.price_kind == "contract"
    return [
        Term(_("What"), servers(quote.quantity, names.offering(quote)), quote.sku),
        Term(_("Where"), names.site(quote.site_code), quote.site_code),
        Term(_("From"), show.instant(quote.starts_at)),
        Term(_("Until"), show.instant(quote.ends_at)),
        Term(
            _("Unit price"),
            _("{price} per GPU-hour").format(price=show.money(quote.unit_price, quote.currency)),
            _("your contract price") if contract else _("list price"),
        ),
        Term(
            _("The whole term"),
            show.money(Decimal(quote.terms["term_total"]), quote.currency),
            _("{n} GPUs, before tax").format(n=gpus),
        ),
        Term(_("VAT"), f"{vat:f} %", _("added to the invoice's sum")),
        Term(
            _("Price rule"),
            _("fixed to the end of the term"),
            _("whatever happens to the list price"),
        ),
        Term(
            _("Charged"),
            _("the whole term, used or not"),
            _("Servers you order under it cost nothing more during the term."),
        ),
        Term(_("Cancelling"), _("free until it begins; not possible afterwards")),
        Term(_("Valid until"), show.instant(quote.valid_until)),
    ]


def month_table(quote: Quote) -> Table:
    """What each billing month of the term costs."""
    return Table(
        caption=_("By month"),
        columns=[Column(_("Month")), Column(_("Amount before tax"), number=True)],
        rows=[
            Row([one["month"], show.money(Decimal(one["amount"]), quote.currency)])
            for one in quote.terms["months"]
        ],
        foot=Row([_("Together"), show.money(Decimal(quote.terms["term_total"]), quote.currency)]),
    )


def free_for(quote: Quote) -> int:
    """How many servers could be reserved for the quoted term now."""
    site = inventory.site_by_code(quote.site_code)
    offering = Offering.objects.filter(pk=quote.offering_id).first()
    if offering is None or quote.starts_at is None or quote.ends_at is None:
        return 0
    return inventory.free_for_term(
        site=site, offering=offering, starts_at=quote.starts_at, ends_at=quote.ends_at
    )


@dataclass(frozen=True)
class Choice:
    """An alternative as it is shown; `fields` are sent to ask for its terms."""

    words: str
    hint: str
    action: str
    fields: dict[str, Any]


def choices_for(quote: Quote) -> list[Choice] | None:
    """What else could be had when too few servers are free for a quote; None when enough are."""
    is_later = quote.starts_at is not None
    if is_later or quote.reservation_id is not None or quote.accepts_recall:
        return None
    rows = inventory.availability(until=quote.ends_at)
    here = [r for r in rows if r.offering_id == quote.offering_id and r.site_id == quote.site_id]
    if here and here[0].free >= quote.quantity:
        return None
    names = Names()
    found = alternatives(
        sku=quote.sku,
        site_code=quote.site_code,
        quantity=quote.quantity,
        ends_at=quote.ends_at,
    )
    return [_choice(one, names) for one in found]


def _choice(one: Alternative, names: Names) -> Choice:
    site = names.site(one.site)
    words = {
        Kind.SITE: _("The same at {site}").format(site=site),
        Kind.OFFERING: _("{offering} at {site}").format(offering=one.offering, site=site),
        Kind.FEWER: ngettext("{n} server now", "{n} servers now", one.quantity).format(
            n=one.quantity
        ),
        Kind.RECALL: _("Servers on loan, now"),
        Kind.LATER: _("The same from {at}").format(
            at=instants.in_words(one.starts_at, seconds=False) if one.starts_at else ""
        ),
    }
    hints = {
        Kind.OFFERING: _("as many GPUs, of another kind"),
        Kind.RECALL: _("They end by themselves before somebody's reservation begins."),
        Kind.LATER: _("As far as ends are known now; nothing is held until then."),
    }
    fields: dict[str, Any] = {"site": one.site, "quantity": one.quantity}
    for name, instant in (("starts_at", one.starts_at), ("ends_at", one.ends_at)):
        if instant is not None:
            fields[name] = instant.astimezone(instants.zone()).strftime("%Y-%m-%dT%H:%M:%S")
    if one.accepts_recall:
        fields["accepts_recall"] = "on"
    action = reverse("portal:quote", args=[one.offering])
    return Choice(words[Kind(one.kind)], hints.get(Kind(one.kind), ""), action, fields)


def extra_terms(quote: Quote) -> list[Term]:
    """What a quote under a reservation, or one that accepts a recall, says besides."""
    found = []
    if "reservation" in quote.terms:
        found.append(
            Term(
                _("Reservation"),
                quote.terms["reservation"]["number"],
                _("It covers these servers to the end of its term; nothing more is charged."),
            )
        )
    if "recall" in quote.terms:
        told = quote.terms["recall"]
        found.append(
            Term(
                _("Recall"),
                _("may end before somebody's reservation"),
                _(
                    "{free} servers were free without an end, {lent} until somebody's reservation. "
                    "You are warned a week, a day and an hour before; {minutes} minutes before the "
                    "reservation begins the server is terminated by itself."
                ).format(
                    free=told["free_for_ever"],
                    lent=told["free_until_recalled"],
                    minutes=told["turn_around_minutes"],
                ),
            )
        )
    return found

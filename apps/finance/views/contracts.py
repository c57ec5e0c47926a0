"""Contracts: what was agreed with whom from when until when; signing, changing, ending."""

from decimal import Decimal
from typing import Any

from django.db import transaction
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.utils.translation import gettext as _
from django.views.decorators.http import require_POST

from apps.accounts.access import needs, person
from apps.catalog import selectors as catalog
from apps.catalog import services
from apps.catalog.models import Contract
from apps.core import clock, show
from apps.core.answers import blame, changed
from apps.core.errors import AppError, NotFound
from apps.core.tables import Column, Empty, Row, Table, Term
from apps.finance import cells
from apps.finance.forms import ContractChangeForm, ContractEndForm, ContractForm
from apps.invoicing import previews
from apps.tenancy.models import Tenant


@needs("catalog.view")
def contract_list(request: HttpRequest) -> HttpResponse:
    """The newest version of every contract."""
    newest: dict[str, Contract] = {}
    for contract in catalog.contracts().order_by("code", "version"):
        newest[contract.code] = contract
    names = Tenant.objects.in_bulk({one.tenant for one in newest.values()})
    columns = [
        Column(_("Contract")),
        Column(_("Tenant")),
        Column(_("Valid from"), hide="md"),
        Column(_("Valid until"), hide="sm"),
        Column(_("Discount"), number=True),
        Column(_("Monthly minimum"), number=True, hide="sm"),
        Column(_("Status")),
    ]
    now = clock.now()
    rows = [
        Row(
            [
                show.link(one.code, reverse("finance:contract", args=[one.code])),
                cells.tenant_link(
                    one.tenant, names[one.tenant].name if one.tenant in names else ""
                ),
                show.instant(one.effective_from),
                show.instant(one.effective_to) if one.effective_to else _("open"),
                _percent(one),
                _amount(one.minimum_monthly_charge, one),
                cells.standing(one, now),
            ],
            id=one.code,
        )
        for one in newest.values()
    ]
    empty = Empty(_("No contracts"), _("Without one a tenant pays list prices."), icon="tag")
    context = {
        "table": Table(columns, rows, _("Contracts"), empty=empty),
        "may_manage": person(request).may("price.manage"),
    }
    return render(request, "finance/contracts.html", context)


@needs("price.manage")
def contract_new(request: HttpRequest) -> HttpResponse:
    """Sign a contract: first what it means is shown, then it is kept."""
    form = ContractForm(request.POST or None, tenants=_tenants())
    if request.method != "POST" or not form.is_valid():
        status = 422 if request.method == "POST" else 200
        return render(request, "finance/contract_new.html", {"form": form}, status=status)
    tenant = Tenant.objects.get(pk=form.cleaned_data["tenant"])
    keep = request.POST.get("keep") == "1"
    try:
        with transaction.atomic():
            contract = services.sign_contract(
                tenant=tenant,
                code=form.cleaned_data["code"],
                effective_from=form.instant("effective_from") or clock.now(),
                effective_to=form.instant("effective_to"),
                terms=services.Terms(**form.terms),
                actor=person(request),
            )
            transaction.set_rollback(not keep)
    except AppError as error:
        blame(form, error)
        return render(request, "finance/contract_new.html", {"form": form}, status=422)
    if keep:
        url = reverse("finance:contract", args=[contract.code])
        return changed(request, url, _("The contract is signed."))
    context = {"form": form, "preview": _preview(tenant, None, contract)}
    return render(request, "finance/contract_new.html", context)


@needs("catalog.view")
def contract(request: HttpRequest, code: str) -> HttpResponse:
    """A contract with all its versions, and the form of a change."""
    return _page(request, _versions(code))


@require_POST
@needs("price.manage")
def contract_change(request: HttpRequest, code: str) -> HttpResponse:
    """Change terms from an instant on: first what it means is shown, then it is kept."""
    versions = _versions(code)
    form = ContractChangeForm(request.POST)
    if not form.is_valid():
        return _page(request, versions, form, status=422)
    keep = request.POST.get("keep") == "1"
    at = form.instant("effective_from")
    try:
        with transaction.atomic():
            new = services.change_contract(
                code=code, at=at or clock.now(), terms=form.terms, actor=person(request)
            )
            transaction.set_rollback(not keep)
    except AppError as error:
        blame(form, error)
        return _page(request, versions, form, status=422)
    if keep:
        return changed(
            request, reverse("finance:contract", args=[code]), _("The new terms are kept.")
        )
    old = next(one for one in versions if one.effective_from < new.effective_from)
    preview = _preview(Tenant.objects.get(pk=new.tenant), old, new)
    return _page(request, versions, form, preview=preview)


@require_POST
@needs("price.manage")
def contract_end(request: HttpRequest, code: str) -> HttpResponse:
    """End a contract at an instant still to come."""
    form = ContractEndForm(request.POST)
    if not form.is_valid():
        return _page(request, _versions(code), end_form=form, status=422)
    try:
        services.end_contract(
            code=code, at=form.instant("at") or clock.now(), actor=person(request)
        )
    except AppError as error:
        blame(form, error)
        return _page(request, _versions(code), end_form=form, status=422)
    return changed(
        request, reverse("finance:contract", args=[code]), _("The contract's end is kept.")
    )


def _page(
    request: HttpRequest,
    versions: list[Contract],
    form: ContractChangeForm | None = None,
    *,
    end_form: ContractEndForm | None = None,
    preview: dict[str, Any] | None = None,
    status: int = 200,
) -> HttpResponse:
    newest, now = versions[0], clock.now()
    tenant = Tenant.objects.filter(pk=newest.tenant).first()
    may_manage = person(request).may("price.manage") and (
        newest.effective_to is None or newest.effective_to > now
    )
    initial = {name: _written(getattr(newest, name)) for name in ContractChangeForm.TERMS}
    context = {
        "contract": newest,
        "tenant_shown": tenant,
        "table": _version_table(versions, now),
        "terms": _terms(newest),
        "form": (form or ContractChangeForm(initial=initial)) if may_manage else None,
        "end_form": (end_form or ContractEndForm()) if may_manage else None,
        "preview": preview,
    }
    return render(request, "finance/contract.html", context, status=status)


def _versions(code: str) -> list[Contract]:
    """All versions, newest first. Raises NotFound."""
    found = list(catalog.contracts().filter(code=code).order_by("-version"))
    if not found:
        raise NotFound()
    return found


def _version_table(versions: list[Contract], now: Any) -> Table:
    columns = [
        Column(_("Version"), number=True),
        Column(_("Valid from")),
        Column(_("Valid until")),
        Column(_("Discount"), number=True),
        Column(_("Monthly minimum"), number=True),
        Column(_("Days to pay"), number=True, hide="md"),
        Column(_("Status")),
    ]
    rows = [
        Row(
            [
                one.version,
                show.instant(one.effective_from, seconds=True),
                show.instant(one.effective_to, seconds=True) if one.effective_to else _("open"),
                _percent(one),
                _amount(one.minimum_monthly_charge, one),
                one.payment_days,
                cells.standing(one, now),
            ],
            id=str(one.pk),
        )
        for one in versions
    ]
    return Table(columns, rows, _("Versions"))


def _terms(one: Contract) -> list[Term]:
    book = one.book
    return [
        Term(_("Currency"), one.currency),
        Term(_("Price of new orders"), one.get_price_rule_display()),
        Term(_("Prepaid credit"), _amount(one.prepaid_credit, one)),
        Term(
            _("Price book"),
            show.link(book.name, reverse("finance:price_book", args=[book.pk]))
            if book
            else _("list prices"),
        ),
        Term(_("Note"), one.note or show.NOTHING),
    ]


def _preview(tenant: Tenant, old: Contract | None, new: Contract) -> dict[str, Any]:
    effect = previews.effect_of_terms(tenant=tenant, old=old, new=new)
    told: dict[str, Any] = {"new": new, "ends": old, "tenant": tenant, "effect": effect}
    if effect is not None:
        told |= {
            "before": show.money(effect.before),
            "after": show.money(effect.after),
            "difference": show.money(effect.difference),
        }
    return told


def _tenants() -> list[tuple[str, str]]:
    return [
        (str(one.pk), f"{one.name} ({one.currency})") for one in Tenant.objects.order_by("name")
    ]


def _written(value: Any) -> Any:
    """A term as one would write it into the form: 10, not 10.0000."""
    return f"{value.normalize():f}" if isinstance(value, Decimal) else value


def _percent(one: Contract) -> str:
    return f"{one.discount_percent.normalize():f} %"


def _amount(amount: Any, one: Contract) -> Any:
    return show.money(amount, one.currency) if amount else show.NOTHING

"""The catalogue: what is sold, and the YAML file it can be kept in."""

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.utils.translation import gettext as _

from apps.accounts.access import needs, person
from apps.catalog import services
from apps.console import reports, selectors
from apps.console.forms import CatalogFileForm
from apps.core import show
from apps.core.answers import changed
from apps.core.tables import Column, Empty, Row, Table


@needs("catalog.view")
def offering_list(request: HttpRequest) -> HttpResponse:
    """Every offering with its hardware and its list prices in force."""
    columns = [
        Column(_("Offering")),
        Column(_("Hardware"), hide="sm"),
        Column(_("Class"), hide="lg"),
        Column(_("Billing"), hide="md"),
        Column(_("List price per GPU-hour"), number=True),
        Column(_("For whom"), hide="md"),
        Column(_("Status")),
    ]
    prices = selectors.list_prices_in_force()
    rows = [
        Row(
            [
                show.stacked(show.local(offering, "name"), show.code(offering.sku)),
                show.stacked(
                    f"{offering.gpus} × {offering.gpu_model.name}",
                    f"{offering.cpus} CPU · {offering.memory_gib:,} GiB · {offering.disk_gb:,} GB",
                ),
                offering.resource_class,
                offering.get_billing_basis_display(),
                reports.lines(
                    show.money(price.amount, price.book.currency)
                    for price in prices.get(offering.sku, [])
                ),
                _("everybody") if offering.is_for_all else _("chosen tenants"),
                show.badge("stopped", _("retired"))
                if offering.retired_at
                else show.badge("active", _("on sale")),
            ],
            tone="" if prices.get(offering.sku) or offering.retired_at else "red",
        )
        for offering in selectors.offerings()
    ]
    table = Table(
        columns,
        rows,
        _("Offerings"),
        empty=Empty(
            _("Nothing is sold yet"), _("Import a catalogue file to begin."), icon="server-2"
        ),
    )
    context = {"table": table, "may_import": person(request).may("catalog.manage")}
    return render(request, "console/offering_list.html", context)


@needs("catalog.manage")
def offering_import(request: HttpRequest) -> HttpResponse:
    """Try a catalogue file and show the difference; keep it only when told to."""
    form = CatalogFileForm(request.POST or None)
    context: dict[str, object] = {"form": form}
    status = 200
    if request.method == "POST":
        status = 422
        if form.is_valid():
            keep = request.POST.get("keep") == "1"
            report = services.import_catalog(
                text=form.cleaned_data["text"], dry_run=not keep, actor=person(request)
            )
            if keep and report.was_applied:
                url = reverse("console:offering_list")
                return changed(request, url, _("The catalogue is imported."))
            refused = report.counts["refused"]
            status = 422 if refused else 200
            context |= {
                "figures": reports.figures(report),
                "table": reports.table(report),
                "may_keep": not refused,
            }
    return render(request, "console/offering_import.html", context, status=status)


@needs("catalog.view")
def offering_export(request: HttpRequest) -> HttpResponse:
    """The catalogue as the file an import takes."""
    response = HttpResponse(
        services.export_catalog(), content_type="application/yaml; charset=utf-8"
    )
    response["Content-Disposition"] = 'attachment; filename="catalog.yaml"'
    return response

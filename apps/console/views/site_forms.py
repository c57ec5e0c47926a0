"""Sites and their address pools, added and changed on pages."""

from uuid import UUID

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.utils.translation import gettext as _

from apps.accounts.access import needs, person
from apps.console.forms import AddressPoolForm, SiteForm
from apps.core.answers import blame, changed
from apps.core.errors import AppError, NotFound
from apps.inventory import services
from apps.inventory.models import AddressPool, Site


@needs("site.manage")
def site_create(request: HttpRequest) -> HttpResponse:
    """Add a site; it stays paused until somebody asked it and resumed it."""
    return _site_page(request, None)


@needs("site.manage")
def site_edit(request: HttpRequest, site_id: UUID) -> HttpResponse:
    """Change a site; its code stays."""
    return _site_page(request, _site(site_id))


@needs("site.manage")
def pool_create(request: HttpRequest, site_id: UUID) -> HttpResponse:
    """Add addresses to a site."""
    return _pool_page(request, _site(site_id), None)


@needs("site.manage")
def pool_edit(request: HttpRequest, site_id: UUID, pool_id: UUID) -> HttpResponse:
    """Change a pool; its name stays, and addresses already leased keep their servers."""
    pool = AddressPool.objects.filter(site=site_id, pk=pool_id).first()
    if pool is None:
        raise NotFound()
    return _pool_page(request, _site(site_id), pool)


def _site_page(request: HttpRequest, site: Site | None) -> HttpResponse:
    form = SiteForm(request.POST or None, site=site)
    if request.method == "POST" and form.is_valid():
        try:
            saved = services.save_site(actor=person(request), **form.columns())
        except AppError as error:
            blame(form, error)
        else:
            told = _("Saved.") if site else _("The site is added. Ask it now, then resume it.")
            return changed(request, reverse("console:site_detail", args=[saved.pk]), told)
    title = _("Edit {name}").format(name=site.shown_name) if site else _("New site")
    hint = "" if site else _("It is paused: nothing is sold there until you resume it.")
    return _drawn(request, form, site=site, title=title, hint=hint)


def _pool_page(request: HttpRequest, site: Site, pool: AddressPool | None) -> HttpResponse:
    form = AddressPoolForm(request.POST or None, site=site, pool=pool)
    if request.method == "POST" and form.is_valid():
        try:
            services.save_address_pool(site=site, actor=person(request), **form.cleaned_data)
        except AppError as error:
            blame(form, error)
        else:
            return changed(
                request, reverse("console:site_detail", args=[site.pk]), _("The pool is saved.")
            )
    title = _("Edit {name}").format(name=pool.name) if pool else _("New address pool")
    hint = _("Leased addresses stay with their servers.") if pool else ""
    return _drawn(request, form, site=site, title=title, hint=hint)


def _drawn(
    request: HttpRequest,
    form: SiteForm | AddressPoolForm,
    *,
    site: Site | None,
    title: str,
    hint: str,
) -> HttpResponse:
    context = {"form": form, "site": site, "title": title, "hint": hint}
    return render(request, "console/site_form.html", context, status=422 if form.errors else 200)


def _site(site_id: UUID) -> Site:
    site = Site.objects.filter(pk=site_id).first()
    if site is None:
        raise NotFound()
    return site

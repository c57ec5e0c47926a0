"""The operator's legal data, as printed on documents."""

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.utils.translation import gettext as _

from apps.accounts.access import needs, person
from apps.core.answers import blame, changed
from apps.core.errors import AppError
from apps.finance.forms import SellerForm
from apps.invoicing import sellers


@needs("invoice.manage")
def edit(request: HttpRequest) -> HttpResponse:
    """See and change who sells."""
    form = SellerForm(request.POST or None, initial=sellers.seller_printed())
    if request.method == "POST" and form.is_valid():
        try:
            sellers.save_seller(actor=person(request), **form.cleaned_data)
        except AppError as error:
            blame(form, error)
        else:
            return changed(request, reverse("finance:seller"), _("Printed from now on."))
    status = 422 if form.errors else 200
    return render(request, "finance/seller.html", {"form": form}, status=status)

"""What staff fill in: tenants, limits, sites, catalogue files."""

from typing import Any

from django import forms
from django.conf import settings
from django.utils.translation import gettext_lazy as _

from apps.core.money import MINOR_UNITS
from apps.tenancy.errors import TenantExists
from apps.tenancy.models import Tenant

CURRENCIES = [(code, code) for code in MINOR_UNITS]
ZONES = [
    (name, name)
    for name in (
        "Asia/Seoul",
        "Asia/Tokyo",
        "Asia/Singapore",
        "Europe/Berlin",
        "Europe/London",
        "America/New_York",
        "America/Los_Angeles",
        "UTC",
    )
]
LARGEST_FILE = 1_000_000


class TenantForm(forms.Form):
    """A new customer and its first administrator."""

    name = forms.CharField(label=_("Name"), max_length=200)
    slug = forms.SlugField(
        label=_("Short name"),
        max_length=30,
        help_text=_(
            "Lower case letters, digits and hyphens: the first part of its address. It stays."
        ),
    )
    admin_name = forms.CharField(label=_("First administrator: name"), max_length=120)
    admin_email = forms.EmailField(
        label=_("First administrator: mail address"),
        help_text=_("A mail tells this person how to set a password."),
    )
    language = forms.ChoiceField(label=_("Language"), choices=settings.LANGUAGES, initial="ko")
    currency = forms.ChoiceField(
        label=_("Currency"),
        choices=CURRENCIES,
        initial="KRW",
        help_text=_("Fixed once the tenant has an order."),
    )
    billing_timezone = forms.ChoiceField(label=_("Billing time zone"), choices=ZONES)
    vat_percent = forms.DecimalField(
        label=_("VAT in percent"), min_value=0, max_value=99, decimal_places=2, initial=10
    )
    legal_name = forms.CharField(label=_("Legal name"), max_length=200, required=False)
    registration_number = forms.CharField(
        label=_("Registration number"), max_length=40, required=False
    )
    billing_address = forms.CharField(label=_("Billing address"), max_length=400, required=False)
    billing_email = forms.EmailField(label=_("Mail address for invoices"), required=False)
    max_gpus = forms.IntegerField(
        label=_("Limit: GPUs"), min_value=0, max_value=100_000, initial=64
    )
    max_services = forms.IntegerField(
        label=_("Limit: services"), min_value=0, max_value=100_000, initial=64
    )

    def clean_slug(self) -> str:
        """The short name, while it is free."""
        slug: str = self.cleaned_data["slug"]
        if Tenant.objects.filter(slug=slug).exists():
            raise forms.ValidationError(TenantExists(slug=slug).detail)
        return slug

    def terms(self) -> dict[str, Any]:
        """The columns of the tenant's row."""
        names = (
            "currency",
            "billing_timezone",
            "language",
            "legal_name",
            "registration_number",
            "billing_address",
            "billing_email",
        )
        terms = {name: self.cleaned_data[name] for name in names}
        return terms | {"vat_rate": self.cleaned_data["vat_percent"] / 100}


class LimitForm(forms.Form):
    """How much a tenant may hold at once."""

    max_gpus = forms.IntegerField(label=_("GPUs"), min_value=0, max_value=100_000)
    max_services = forms.IntegerField(label=_("Services"), min_value=0, max_value=100_000)


class CatalogFileForm(forms.Form):
    """A catalogue as YAML: tried first, kept on request."""

    text = forms.CharField(
        label=_("Catalogue (YAML)"),
        max_length=LARGEST_FILE,
        strip=False,
        widget=forms.Textarea(attrs={"rows": 18, "spellcheck": "false", "class": "font-monospace"}),
        help_text=_("GPU models, images, offerings, price books and prices. All of it or nothing."),
    )

"""What finance fills in: a new price version, a month."""

from datetime import UTC, datetime
from typing import Any
from zoneinfo import ZoneInfo

from django import forms
from django.conf import settings
from django.utils.translation import gettext_lazy as _

from apps.catalog.models import Unit
from apps.catalog.services.pricing import YEARS

ZONES = [(name, name) for name in dict.fromkeys((settings.NEOCLOUD_TIMEZONE, "Asia/Seoul", "UTC"))]


class PriceForm(forms.Form):
    """A new version of a price: from an instant on, until the version after it."""

    sku = forms.ChoiceField(label="SKU")
    unit = forms.ChoiceField(label=_("Unit"), choices=Unit.choices, initial=Unit.GPU_HOUR)
    amount = forms.DecimalField(
        label=_("Price for one unit"),
        max_digits=18,
        decimal_places=6,
        min_value=0,
        help_text=_("At most six decimals; one GPU for one hour, however many the server has."),
    )
    effective_from = forms.DateTimeField(
        label=_("Valid from"),
        widget=forms.DateTimeInput(attrs={"type": "datetime-local", "step": "1"}),
        input_formats=["%Y-%m-%dT%H:%M:%S", "%Y-%m-%dT%H:%M", "%Y-%m-%d %H:%M"],
        help_text=_(
            "The second from which it is charged. Time already invoiced cannot be repriced."
        ),
    )
    zone = forms.ChoiceField(label=_("Time zone"), choices=ZONES)
    code = forms.CharField(
        label=_("Code on invoices"),
        max_length=60,
        required=False,
        help_text=_("Left empty, one is made of the price book's code, the SKU and a number."),
    )

    def __init__(self, *args: Any, skus: list[tuple[str, str]], **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields["sku"] = forms.ChoiceField(label="SKU", choices=skus)

    def clean_effective_from(self) -> datetime:
        """A year that exists in every time zone; the service says the same to everybody else."""
        local: datetime = self.cleaned_data["effective_from"]
        if local.year not in YEARS:
            raise forms.ValidationError(
                _("Its year must lie between {first} and {last}.").format(
                    first=YEARS[0], last=YEARS[-1]
                )
            )
        return local

    @property
    def instant(self) -> datetime:
        """The chosen second, in UTC."""
        local: datetime = self.cleaned_data["effective_from"]
        zone = ZoneInfo(self.cleaned_data["zone"])
        return local.replace(tzinfo=zone).astimezone(UTC)


class SellerForm(forms.Form):
    """The operator's legal data; documents issued before keep what they say."""

    legal_name = forms.CharField(label=_("Legal name"), max_length=200)
    registration_number = forms.CharField(
        label=_("Registration number"),
        max_length=40,
        required=False,
        help_text=_("Korean: ten digits, 123-45-67891."),
    )
    representative = forms.CharField(label=_("Representative"), max_length=100, required=False)
    address = forms.CharField(label=_("Address"), max_length=400, required=False)
    business_type = forms.CharField(label=_("Business type"), max_length=100, required=False)
    business_item = forms.CharField(label=_("Business item"), max_length=100, required=False)
    email = forms.EmailField(label=_("Email"), required=False)
    phone = forms.CharField(label=_("Telephone"), max_length=40, required=False)
    bank_account = forms.CharField(
        label=_("Bank account"),
        max_length=200,
        required=False,
        help_text=_("Where invoices are paid to; printed below the total."),
    )

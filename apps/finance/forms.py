"""What finance fills in: a new price version, contracts and their terms."""

from datetime import UTC, datetime
from typing import Any
from zoneinfo import ZoneInfo

from django import forms
from django.conf import settings
from django.utils.translation import gettext_lazy as _

from apps.catalog.models import CODE, PriceRule, Unit
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


def _instant_field(label: Any, *, required: bool = True, help_text: Any = "") -> Any:
    return forms.DateTimeField(
        label=label,
        required=required,
        widget=forms.DateTimeInput(attrs={"type": "datetime-local", "step": "1"}),
        input_formats=["%Y-%m-%dT%H:%M:%S", "%Y-%m-%dT%H:%M", "%Y-%m-%d %H:%M"],
        help_text=help_text,
    )


class _Zoned(forms.Form):
    """Local times with the zone they are meant in."""

    def instant(self, name: str) -> datetime | None:
        """A chosen second, in UTC; None when the field was left empty."""
        local: datetime | None = self.cleaned_data.get(name)
        if local is None:
            return None
        return local.replace(tzinfo=ZoneInfo(self.cleaned_data["zone"])).astimezone(UTC)


class ContractChangeForm(_Zoned):
    """Terms from an instant on."""

    TERMS = (
        "discount_percent",
        "minimum_monthly_charge",
        "payment_days",
        "prepaid_credit",
        "price_rule",
        "note",
    )

    effective_from = _instant_field(
        _("Valid from"), help_text=_("The second from which the terms hold.")
    )
    zone = forms.ChoiceField(label=_("Time zone"), choices=ZONES)
    discount_percent = forms.DecimalField(
        label=_("Discount in percent"),
        max_digits=7,
        decimal_places=4,
        min_value=0,
        max_value=100,
        initial=0,
        help_text=_("Of usage; it touches neither reservations nor minimums nor late usage."),
    )
    minimum_monthly_charge = forms.DecimalField(
        label=_("Monthly minimum"),
        max_digits=18,
        decimal_places=2,
        min_value=0,
        required=False,
        help_text=_("Before tax; a part month owes its part. Left empty: no minimum."),
    )
    payment_days = forms.IntegerField(
        label=_("Days to pay"), min_value=0, max_value=365, initial=30
    )
    prepaid_credit = forms.DecimalField(
        label=_("Prepaid credit"), max_digits=18, decimal_places=2, min_value=0, initial=0
    )
    price_rule = forms.ChoiceField(label=_("Price of new orders"), choices=PriceRule.choices)
    note = forms.CharField(label=_("Note"), max_length=400, required=False)

    @property
    def terms(self) -> dict[str, Any]:
        """The terms as chosen."""
        return {name: self.cleaned_data[name] for name in self.TERMS}


class ContractForm(ContractChangeForm):
    """A new contract of a tenant."""

    tenant = forms.ChoiceField(label=_("Tenant"))
    code = forms.CharField(
        label=_("Code"),
        max_length=60,
        validators=[CODE],
        help_text=_("Small letters, digits, dots and hyphens, such as ct-2026-014."),
    )
    effective_to = _instant_field(
        _("Valid until"), required=False, help_text=_("Left empty: until it is ended.")
    )
    field_order = ("tenant", "code", "effective_from", "effective_to", "zone")

    def __init__(self, *args: Any, tenants: list[tuple[str, str]], **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields["tenant"] = forms.ChoiceField(label=_("Tenant"), choices=tenants)
        self.order_fields(self.field_order)


class ContractEndForm(_Zoned):
    """When a contract ends."""

    at = _instant_field(_("Ends at"))
    zone = forms.ChoiceField(label=_("Time zone"), choices=ZONES)

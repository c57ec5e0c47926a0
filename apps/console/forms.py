"""What staff fill in: tenants, limits, sites, catalogue files."""

from typing import Any

from django import forms
from django.conf import settings
from django.core.validators import validate_ipv46_address
from django.utils.translation import gettext_lazy as _

from apps.catalog.models import CODE
from apps.core.money import MINOR_UNITS
from apps.inventory.drivers import drivers
from apps.inventory.models import AddressPool, Site
from apps.provisioning.services.overrides import LEAST_EVIDENCE
from apps.provisioning.services.policies import POSSIBLE
from apps.provisioning.words import LABELS
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


class SiteForm(forms.Form):
    """A place with servers and the way to its infrastructure."""

    code = forms.CharField(
        label=_("Code"),
        max_length=60,
        validators=[CODE],
        help_text=_("Lower case letters, digits, dots and hyphens, such as seoul-1. It stays."),
    )
    name = forms.CharField(label=_("Name"), max_length=120)
    name_ko = forms.CharField(label=_("Name in Korean"), max_length=120, required=False)
    timezone = forms.ChoiceField(label=_("Time zone"), choices=ZONES)
    driver = forms.ChoiceField(
        label=_("Driver"),
        choices=lambda: [(name, name) for name in sorted(drivers())],
        initial="ironic",
    )
    endpoint = forms.CharField(
        label=_("Endpoint"),
        max_length=200,
        help_text=_("Where the bare metal service answers, such as https://ironic.example.com."),
    )
    username = forms.CharField(label=_("Signs in as"), max_length=120, required=False)
    password = forms.CharField(
        label=_("Password"),
        max_length=200,
        required=False,
        strip=False,
        widget=forms.PasswordInput(attrs={"autocomplete": "new-password"}),
        help_text=_("Kept sealed and never shown again."),
    )
    call_home_url = forms.CharField(
        label=_("Servers report to"),
        max_length=200,
        help_text=_("Reachable for new servers of this site; they prove themselves there."),
    )
    concurrency = forms.IntegerField(
        label=_("Works at once on"), min_value=1, max_value=1000, initial=20
    )
    turn_around_minutes = forms.IntegerField(
        label=_("Minutes between two customers of a node"),
        min_value=0,
        max_value=7 * 24 * 60,
        initial=60,
        help_text=_("For removal and cleaning, before a reservation begins on the same node."),
    )
    console_url = forms.CharField(
        label=_("Console of a server"),
        max_length=200,
        required=False,
        help_text=_(
            "An address with {node} for the node's name; empty: the infrastructure is asked."
        ),
    )
    is_routable = forms.BooleanField(
        label=_("Servers can be reached from here: SSH is tried before hand-over"), required=False
    )
    is_simulated = forms.BooleanField(
        label=_("Simulated hardware: proofs of cleaning say so"), required=False
    )

    def __init__(self, *args: Any, site: Site | None = None, **kwargs: Any):
        super().__init__(*args, **kwargs)
        self._site = site
        if site is None:
            self.initial.setdefault("call_home_url", settings.NEOCLOUD_CALL_HOME_URL)
            return
        self.initial.update(
            {name: getattr(site, name) for name in self.fields if name != "password"}
        )
        for name in ("timezone", "driver"):
            _keep(self.fields[name], getattr(site, name))
        self.fields["code"].disabled = True
        self.fields["password"].help_text = _("Empty leaves the one there is.")

    def clean_code(self) -> str:
        """The code, while it is free."""
        code: str = self.cleaned_data["code"]
        if self._site is None and Site.objects.filter(code=code).exists():
            raise forms.ValidationError(_("There is a site with this code. Choose another one."))
        return code

    def columns(self) -> dict[str, Any]:
        """What `save_site` takes; without a password the one there is stays."""
        return self.cleaned_data | {"password": self.cleaned_data["password"] or None}


class AddressPoolForm(forms.Form):
    """Addresses of a site that its servers are given."""

    name = forms.CharField(label=_("Name"), max_length=80)
    prefix = forms.CharField(  # type: ignore[assignment]
        label=_("Network"), max_length=50, help_text=_("With its length, such as 10.20.0.0/24.")
    )
    gateway = forms.GenericIPAddressField(label=_("Gateway"))
    first_address = forms.GenericIPAddressField(label=_("First address"))
    last_address = forms.GenericIPAddressField(
        label=_("Last address"), help_text=_("Both belong to the pool.")
    )
    dns = forms.CharField(
        label=_("DNS servers"), required=False, help_text=_("Separated by spaces or commas.")
    )
    vlan_first = forms.IntegerField(label=_("First VLAN"), min_value=1, max_value=4094, initial=100)
    vlan_last = forms.IntegerField(
        label=_("Last VLAN"),
        min_value=1,
        max_value=4094,
        initial=199,
        help_text=_("Each tenant's servers share one that nobody else has."),
    )

    def __init__(self, *args: Any, site: Site, pool: AddressPool | None = None, **kwargs: Any):
        super().__init__(*args, **kwargs)
        self._site, self._pool = site, pool
        if pool is not None:
            self.initial.update({name: getattr(pool, name) for name in self.fields})
            self.initial["dns"] = " ".join(pool.dns)
            self.fields["name"].disabled = True

    def clean_name(self) -> str:
        """The name, while the site has no pool of it."""
        name: str = self.cleaned_data["name"]
        if self._pool is None and self._site.address_pools.filter(name=name).exists():
            raise forms.ValidationError(_("This site has a pool of that name. Choose another one."))
        return name

    def clean_dns(self) -> list[str]:
        """The addresses of the DNS servers."""
        found: list[str] = self.cleaned_data["dns"].replace(",", " ").split()
        for address in found:
            validate_ipv46_address(address)
        return found


def _keep(field: forms.Field, value: str) -> None:
    """Let a choice field keep a value that came by API or command."""
    choices = list(field.choices)  # type: ignore[attr-defined]
    if value not in dict(choices):
        field.choices = [(value, value), *choices]  # type: ignore[attr-defined]


class CatalogFileForm(forms.Form):
    """A catalogue as YAML: tried first, kept on request."""

    text = forms.CharField(
        label=_("Catalogue (YAML)"),
        max_length=LARGEST_FILE,
        strip=False,
        widget=forms.Textarea(attrs={"rows": 18, "spellcheck": "false", "class": "font-monospace"}),
        help_text=_("GPU models, images, offerings, price books and prices. All of it or nothing."),
    )


def _choices(name: str) -> list[tuple[str, Any]]:
    return [(then.value, then.label) for then in POSSIBLE[name]]


class PolicyForm(forms.Form):
    """What follows a failure; ranges and combinations are checked where they are decided."""

    on_node_fault = forms.ChoiceField(
        label=LABELS["on_node_fault"], choices=_choices("on_node_fault")
    )
    max_replacements = forms.IntegerField(
        label=LABELS["max_replacements"],
        required=False,
        help_text=_("Empty: as the offering says."),
    )
    on_no_capacity = forms.ChoiceField(
        label=LABELS["on_no_capacity"], choices=_choices("on_no_capacity")
    )
    on_refused = forms.ChoiceField(label=LABELS["on_refused"], choices=_choices("on_refused"))
    on_unknown = forms.ChoiceField(label=LABELS["on_unknown"], choices=_choices("on_unknown"))
    after_last_try = forms.ChoiceField(
        label=LABELS["after_last_try"], choices=_choices("after_last_try")
    )
    try_minutes = forms.IntegerField(
        label=LABELS["try_minutes"],
        help_text=_("It stands still while a run is held, queued, or its site does not work."),
    )
    first_wait_seconds = forms.IntegerField(label=LABELS["first_wait_seconds"])
    longest_wait_seconds = forms.IntegerField(label=LABELS["longest_wait_seconds"])
    hold_hours = forms.IntegerField(
        label=LABELS["hold_hours"], help_text=_("Then everything is undone, if nobody decided.")
    )
    undo_minutes = forms.IntegerField(
        label=LABELS["undo_minutes"], help_text=_("What is not undone by then is a leak.")
    )
    on_host_fault = forms.ChoiceField(
        label=LABELS["on_host_fault"], choices=_choices("on_host_fault")
    )
    host_fault_minutes = forms.IntegerField(label=LABELS["host_fault_minutes"])
    recleanings = forms.IntegerField(
        label=LABELS["recleanings"],
        help_text=_("After a cleaning whose conductor died: the node is not to blame."),
    )
    leak_retry_minutes = forms.IntegerField(label=LABELS["leak_retry_minutes"])
    reason = forms.CharField(label=_("Reason"), max_length=300, min_length=3)


class ReplaceForm(forms.Form):
    """Whose fault it is, and why another node is wanted."""

    blame = forms.ChoiceField(
        label=_("The node"),
        choices=[
            ("no", _("is not to blame: cleaned and sold again")),
            ("yes", _("is to blame: quarantined, with a ticket")),
        ],
        widget=forms.RadioSelect,
    )
    reason = forms.CharField(label=_("Reason"), max_length=300, min_length=3)


class OverrideForm(forms.Form):
    """What was done and seen in place of the proof."""

    evidence = forms.CharField(
        label=_("What was done and seen"),
        min_length=LEAST_EVIDENCE,
        max_length=2000,
        widget=forms.Textarea(attrs={"rows": 5}),
        help_text=_(
            "It stands in the record with your name and the name of whoever confirms it, and is "
            "never shown as measured."
        ),
    )

"""The buttons of a service's page: what each does to the server and to its bill."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from django import forms
from django.utils.translation import gettext_lazy as _

from apps.accounts.models import User
from apps.catalog.models import BillingBasis
from apps.orders.models import Service
from apps.orders.verbs import LABELS
from apps.portal.forms import ReinstallForm, RescueForm
from apps.provisioning import services as provisioning

if TYPE_CHECKING:
    from django_stubs_ext import StrOrPromise

ICONS = {
    "power_off": "power",
    "power_on": "player-play",
    "reboot": "rotate",
    "power_cycle": "refresh",
    "reinstall": "download",
    "rescue": "tool",
    "unrescue": "arrow-left",
}
TEXTS: "dict[str, StrOrPromise]" = {
    "power_on": _("It is active, and charged, once it is really on."),
    "reboot": _(
        "The operating system is asked to stop; after two minutes the power is cut. "
        "It stays charged."
    ),
    "power_cycle": _("The power is cut at once, whatever the server is doing. It stays charged."),
    "reinstall": _(
        "The server is wiped and installed anew: everything on its disks is lost. Name, address "
        "and price stay, its SSH host keys change. It stays charged."
    ),
    "rescue": _(
        "A small system boots beside the server's own disks, for repairs. Sign in as “rescue” with "
        "the password you choose here. It stays charged."
    ),
    "unrescue": _("The server's own system boots again."),
}
POWER_OFF: "dict[str, StrOrPromise]" = {
    BillingBasis.ALLOCATED: _(
        "The operating system is asked to stop; after two minutes the power is cut. The server "
        "stays yours, and allocated time stays charged. Terminate it to end the cost."
    ),
    BillingBasis.RUNNING: _(
        "The operating system is asked to stop; after two minutes the power is cut. Running time "
        "is charged until it is really off."
    ),
}


@dataclass(frozen=True)
class Operation:
    """A button with its dialog."""

    verb: str
    label: Any
    icon: str
    text: Any
    form: forms.Form | None
    tone: str

    @property
    def dialog(self) -> str:
        """The dialog's id."""
        return f"operate-{self.verb}"


def operations(service: Service) -> list[Operation]:
    """Every dialog of the page; the buttons show by themselves what is possible."""
    return [
        Operation(
            verb=verb,
            label=LABELS[verb],
            icon=ICONS[verb],
            text=POWER_OFF[service.order.billing_basis] if verb == "power_off" else TEXTS[verb],
            form=_form(service, verb),
            tone="danger" if verb in ("reinstall", "power_cycle") else "primary",
        )
        for verb in provisioning.TENANT_VERBS
    ]


def possible(service: Service, who: User, *, is_busy: bool) -> list[Operation]:
    """The buttons a person sees now."""
    if not who.may("service.operate"):
        return []
    verbs = provisioning.possible_verbs(service, is_idle=not is_busy)
    return [Operation(verb, LABELS[verb], ICONS[verb], "", None, "primary") for verb in verbs]


def _form(service: Service, verb: str) -> forms.Form | None:
    if verb == "reinstall":
        return ReinstallForm.of(service)
    return RescueForm() if verb == "rescue" else None

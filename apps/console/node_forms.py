"""What staff fill in about nodes: tickets, racks, planned work."""

from datetime import datetime
from typing import Any

from django import forms
from django.utils.translation import gettext_lazy as _

from apps.core.instants import zone

TICKET_KINDS = [
    ("node", _("Node")),
    ("gpu", "GPU"),
    ("nic", _("Network port")),
    ("disk", _("Disk")),
    ("memory", _("Memory")),
    ("bmc", "BMC"),
    ("power", _("Power")),
    ("cooling", _("Cooling")),
    ("network", _("Network")),
]
INSTANT = forms.DateTimeInput(attrs={"type": "datetime-local"}, format="%Y-%m-%dT%H:%M")


class TicketForm(forms.Form):
    """Work on a node: what is wrong, of which kind, what is done about it."""

    title = forms.CharField(label=_("What is wrong"), max_length=200)
    category = forms.ChoiceField(label=_("Kind"), choices=TICKET_KINDS)
    action = forms.CharField(label=_("What is done about it"), max_length=200, required=False)
    detail = forms.CharField(
        label=_("More"), required=False, max_length=4000, widget=forms.Textarea(attrs={"rows": 3})
    )


class TicketUpdateForm(forms.Form):
    """How the work goes on."""

    category = forms.ChoiceField(label=_("Kind"), choices=TICKET_KINDS)
    action = forms.CharField(label=_("What is done about it"), max_length=200, required=False)
    detail = forms.CharField(
        label=_("More"), required=False, max_length=4000, widget=forms.Textarea(attrs={"rows": 3})
    )


class RackForm(forms.Form):
    """A rack to cordon, or to sell again."""

    rack = forms.ChoiceField(label=_("Rack"))
    verb = forms.ChoiceField(
        label=_("What to do"),
        choices=[
            ("cordon", _("Give its nodes to nobody new")),
            ("uncordon", _("Sell its nodes again")),
        ],
    )
    reason = forms.CharField(label=_("Reason"), max_length=300, min_length=3)

    def __init__(self, *args: Any, racks: list[str], **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        choice: Any = self.fields["rack"]
        choice.choices = [(rack, rack) for rack in racks]


class MaintenanceForm(forms.Form):
    """Planned work: which nodes, when, what the customers are told."""

    title = forms.CharField(
        label=_("What is done"),
        max_length=200,
        help_text=_("The customers of these nodes read this, and nothing else of the below."),
    )
    nodes = forms.CharField(
        label=_("Nodes"),
        widget=forms.Textarea(attrs={"rows": 4, "spellcheck": "false"}),
        max_length=40_000,
        help_text=_("Names of nodes, or rack:NAME for a whole rack; one a line."),
    )
    starts_at = forms.DateTimeField(label=_("Begins"), widget=INSTANT)
    ends_at = forms.DateTimeField(label=_("Ends"), widget=INSTANT)
    is_retirement = forms.BooleanField(label=_("The nodes go out for good"), required=False)
    detail = forms.CharField(
        label=_("Notes for operators"),
        required=False,
        max_length=4000,
        widget=forms.Textarea(attrs={"rows": 3}),
    )

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields["starts_at"].help_text = _("Time zone: {zone}").format(zone=zone())

    def clean_starts_at(self) -> datetime:
        """In the zone the page shows instants in."""
        return self._here("starts_at")

    def clean_ends_at(self) -> datetime:
        """In the zone the page shows instants in."""
        return self._here("ends_at")

    def _here(self, name: str) -> datetime:
        given: datetime = self.cleaned_data[name]
        return given.replace(tzinfo=zone())

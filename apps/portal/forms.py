"""What people fill in on the portal's pages."""

from collections.abc import Iterable
from datetime import datetime, time
from typing import Any
from uuid import UUID

from django import forms
from django.conf import settings
from django.utils import timezone
from django.utils.translation import gettext_lazy as _

from apps.accounts.models import Project, SSHKey, User
from apps.accounts.roles import TENANT_ROLES
from apps.accounts.ssh_keys import EXAMPLE
from apps.catalog.models import Image
from apps.catalog.selectors import images_of
from apps.core import instants
from apps.orders.models import IfUnavailable, Quote, Service
from apps.orders.services.policy import MOST


class InstantField(forms.DateTimeField):
    """A date and a time in the zone of this side, to the minute."""

    widget = forms.DateTimeInput(attrs={"type": "datetime-local"}, format="%Y-%m-%dT%H:%M")

    def __init__(self, *, label: Any, help_text: Any = "", required: bool = False) -> None:
        super().__init__(label=label, required=required, help_text=help_text)

    def to_python(self, value: Any) -> datetime | None:
        """An aware instant."""
        with timezone.override(instants.zone()):
            return super().to_python(value)

    def prepare_value(self, value: Any) -> Any:
        """As the browser's own field writes it."""
        return value.astimezone(instants.zone()) if isinstance(value, datetime) else value


class QuoteForm(forms.Form):
    """How much of an offering, and where."""

    site = forms.ChoiceField(label=_("Site"))
    quantity = forms.IntegerField(label=_("Servers"), min_value=1, initial=1)
    starts_at = InstantField(label=_("Start"), help_text=_("Empty: as soon as possible."))
    ends_at = InstantField(
        label=_("End"),
        help_text=_("Empty: until you terminate it. At its end it is terminated by itself."),
    )
    accepts_recall = forms.BooleanField(
        label=_("A server on loan will do"),
        required=False,
        help_text=_(
            "It may be one that somebody reserved for later: it ends by itself before that. You "
            "are warned."
        ),
    )

    def __init__(self, *args: Any, sites: Iterable[tuple[str, str]], most: int, **kwargs: Any):
        super().__init__(*args, **kwargs)
        self.fields["site"].choices = list(sites)  # type: ignore[attr-defined]
        self.fields["quantity"].widget.attrs["max"] = most
        self.fields["quantity"].help_text = _("At most {most} in one order.").format(most=most)


class DayField(forms.DateField):
    """A day, as the instant at which it begins in the zone of this side."""

    widget = forms.DateInput(attrs={"type": "date"}, format="%Y-%m-%d")

    def __init__(self, *, label: Any, help_text: Any = "", required: bool = True) -> None:
        super().__init__(label=label, required=required, help_text=help_text)

    def clean(self, value: Any) -> Any:
        """The first instant of the day."""
        day = super().clean(value)
        return None if day is None else datetime.combine(day, time.min, tzinfo=instants.zone())


class TermForm(forms.Form):
    """Which capacity, from which day to which."""

    offering = forms.ChoiceField(label=_("Offering"))
    site = forms.ChoiceField(label=_("Site"))
    quantity = forms.IntegerField(label=_("Servers"), min_value=1, initial=1)
    starts_on = DayField(label=_("From"), required=False)
    ends_on = DayField(label=_("Until"))

    def __init__(
        self,
        *args: Any,
        offerings: Iterable[tuple[str, str]],
        sites: Iterable[tuple[str, str]],
        **kwargs: Any,
    ):
        super().__init__(*args, **kwargs)
        self.fields["offering"].choices = list(offerings)  # type: ignore[attr-defined]
        self.fields["site"].choices = list(sites)  # type: ignore[attr-defined]
        shortest, longest = settings.NEOCLOUD_RESERVATION_DAYS
        self.fields["starts_on"].help_text = _("At midnight of your billing time zone. Empty: now.")
        self.fields["ends_on"].help_text = _(
            "At the beginning of this day; {shortest} to {longest} days in all."
        ).format(shortest=shortest, longest=longest)


class BookForm(forms.Form):
    """What a reservation needs besides its quote."""

    project = forms.ChoiceField(label=_("Project"), help_text=_("Costs are shown by project."))
    name = forms.CharField(
        label=_("Name"), max_length=60, help_text=_("Letters, digits and hyphens.")
    )

    def __init__(self, *args: Any, projects: Iterable[Project], **kwargs: Any):
        super().__init__(*args, **kwargs)
        choices = [(str(project.pk), project.name) for project in projects]
        self.fields["project"].choices = choices  # type: ignore[attr-defined]


class UnderForm(forms.Form):
    """Servers under a reservation."""

    ENDS, GOES_ON = "ends", "goes_on"

    quantity = forms.IntegerField(label=_("Servers"), min_value=1, initial=1)
    at_end = forms.ChoiceField(
        label=_("When the term is over"),
        widget=forms.RadioSelect,
        initial=ENDS,
        choices=[
            (ENDS, _("Terminate them with the term")),
            (GOES_ON, _("Go on, on demand, where nobody has reserved the server; else terminate")),
        ],
    )

    def __init__(self, *args: Any, most: int, **kwargs: Any):
        super().__init__(*args, **kwargs)
        self.fields["quantity"].widget.attrs["max"] = most


class PlaceForm(forms.Form):
    """What an order needs besides its quote."""

    project = forms.ChoiceField(label=_("Project"), help_text=_("Costs are shown by project."))
    name = forms.CharField(
        label=_("Name"),
        max_length=60,
        help_text=_("Letters, digits and hyphens; it becomes the host name."),
    )
    image = forms.ChoiceField(label=_("Image"))
    ssh_keys = forms.MultipleChoiceField(
        label=_("SSH keys"), required=False, widget=forms.CheckboxSelectMultiple
    )
    pasted = forms.CharField(
        label=_("Or paste public keys"),
        required=False,
        widget=forms.Textarea(attrs={"rows": 3, "placeholder": EXAMPLE, "spellcheck": "false"}),
        help_text=_("One line each. At least one key is needed to sign in to the server."),
    )
    if_unavailable = forms.ChoiceField(
        label=_("If no server is free now"),
        widget=forms.RadioSelect,
        initial=IfUnavailable.FAIL,
        choices=[
            (IfUnavailable.FAIL, _("Refuse the order; nothing is kept")),
            (
                IfUnavailable.QUEUE,
                _("Wait in the queue, in turns with others; free until ready"),
            ),
        ],
    )
    queue_days = forms.IntegerField(
        label=_("Days to wait at most"), min_value=1, max_value=90, initial=7, required=False
    )

    def __init__(
        self,
        *args: Any,
        quote: Quote,
        projects: Iterable[Project],
        images: Iterable[Image],
        keys: Iterable[SSHKey],
        **kwargs: Any,
    ):
        super().__init__(*args, **kwargs)
        choices = {
            "project": [(str(project.pk), project.name) for project in projects],
            "image": [(image.code, image.name) for image in images],
            "ssh_keys": [(str(key.pk), f"{key.name} · {key.fingerprint[:19]}…") for key in keys],
        }
        for name, known in choices.items():
            self.fields[name].choices = known  # type: ignore[attr-defined]
        if choices["ssh_keys"]:
            self.fields["ssh_keys"].initial = [choices["ssh_keys"][0][0]]
        else:
            del self.fields["ssh_keys"]
            self.fields["pasted"].label = _("SSH public keys")
            self.fields["pasted"].required = True
        if quote.quantity > 1:
            self.fields["name"].help_text = _(
                "Letters, digits and hyphens; the servers are numbered behind it: name-1, name-2 …"
            )


class ScheduleForm(forms.Form):
    """From when to when an order runs that has not begun."""

    starts_at = InstantField(label=_("Start"), help_text=_("Empty: begin now."))
    ends_at = InstantField(label=_("End"), help_text=_("Empty: until you terminate it."))


class EndForm(forms.Form):
    """Until when a service runs."""

    ends_at = InstantField(
        label=_("End"),
        help_text=_("Empty: until you terminate it. Warnings come a week, a day, an hour before."),
    )


class PolicyForm(forms.Form):
    """What administrators decide about orders of their own people; empty means no rule."""

    approval_from_gpus = forms.IntegerField(
        label=_("Approval from how many GPUs on"),
        min_value=1,
        required=False,
        help_text=_("For people who may not approve themselves; 1: every order. Empty: none."),
    )
    approval_hours = forms.IntegerField(
        label=_("Hours until a question expires"), min_value=1, max_value=MOST["approval_hours"]
    )
    longest_days = forms.IntegerField(
        label=_("Longest duration of a service, in days"),
        min_value=1,
        required=False,
        help_text=_("Every order then needs an end. Empty: no limit."),
    )


class PersonForm(forms.Form):
    """Somebody new in the organisation."""

    email = forms.EmailField(label=_("Email"))
    name = forms.CharField(label=_("Name"), max_length=120)
    role = forms.ChoiceField(label=_("Role"))
    language = forms.ChoiceField(label=_("Language"), choices=settings.LANGUAGES)

    def __init__(self, *args: Any, actor: User, **kwargs: Any):
        super().__init__(*args, **kwargs)
        self.fields["role"].choices = [  # type: ignore[attr-defined]
            (role.value, role.label) for role in reversed(TENANT_ROLES)
        ]
        self.fields["language"].initial = actor.language


class ProjectForm(forms.Form):
    """A new project."""

    name = forms.CharField(label=_("Name"), max_length=80)
    description = forms.CharField(label=_("Description"), max_length=300, required=False)


class SSHKeyForm(forms.Form):
    """A public key to keep."""

    name = forms.CharField(
        label=_("Name"), max_length=80, help_text=_("Which device it belongs to, for example.")
    )
    public_key = forms.CharField(
        label=_("Public key"),
        widget=forms.Textarea(attrs={"rows": 4, "placeholder": EXAMPLE, "spellcheck": "false"}),
        help_text=_("One line, from the .pub file: ssh-ed25519, ecdsa, or ssh-rsa of 3072 bits."),
    )


class AccessKeyForm(forms.Form):
    """A key for programs."""

    name = forms.CharField(
        label=_("Name"), max_length=80, help_text=_("Which program uses it, for example.")
    )
    days = forms.IntegerField(label=_("Valid for days"), min_value=1, max_value=365, initial=90)


class LimitForm(forms.Form):
    """A project's own share; empty takes it away."""

    max_gpus = forms.IntegerField(label=_("GPUs at most"), min_value=0, required=False)


class ReinstallForm(forms.Form):
    """What a server is installed with anew; nothing chosen: as it was."""

    image = forms.ChoiceField(label=_("Image"), required=False)
    ssh_key_ids = forms.MultipleChoiceField(
        label=_("SSH keys"),
        required=False,
        widget=forms.CheckboxSelectMultiple,
        help_text=_("None chosen: the keys it has now."),
    )

    @classmethod
    def of(cls, service: Service, data: Any = None) -> "ReinstallForm":
        """The images of the service's offering and the person's side's keys."""
        form = cls(data)
        images = images_of(service.sku)
        choices = [("", _("as it is now")), *((one.code, one.name) for one in images)]
        form.fields["image"].choices = choices  # type: ignore[attr-defined]
        keys = SSHKey.objects.order_by("name").values_list("pk", "name")
        form.fields["ssh_key_ids"].choices = [  # type: ignore[attr-defined]
            (str(key), name) for key, name in keys
        ]
        return form

    def clean_ssh_key_ids(self) -> list[UUID]:
        """The ids as they are stored."""
        return [UUID(key) for key in self.cleaned_data["ssh_key_ids"]]


class RescueForm(forms.Form):
    """The password of the rescue system; it is passed on and kept nowhere."""

    password = forms.CharField(
        label=_("Password"),
        min_length=12,
        max_length=72,
        strip=False,
        widget=forms.PasswordInput(attrs={"autocomplete": "new-password"}),
        help_text=_("At least 12 characters. We pass it on and do not keep it."),
    )


class RenameForm(forms.Form):
    """A host name."""

    name = forms.CharField(
        label=_("Name"),
        max_length=60,
        help_text=_("Letters, digits and hyphens. The server takes it when it is next installed."),
    )


class TagsForm(forms.Form):
    """Tags, one on each line."""

    tags = forms.CharField(
        label=_("Tags"),
        required=False,
        max_length=4000,
        widget=forms.Textarea(attrs={"rows": 5, "spellcheck": "false"}),
        help_text=_("One on each line: name=value. For example team=vision."),
    )

    def clean_tags(self) -> dict[str, str]:
        """Names and values; a line without a sign is a name alone."""
        found = {}
        for line in self.cleaned_data["tags"].splitlines():
            name, _sign, value = line.partition("=")
            if name.strip():
                found[name.strip()] = value.strip()
        return found

    @staticmethod
    def shown(tags: dict[str, str]) -> str:
        """Tags as the form has them."""
        return "\n".join(f"{name}={value}" if value else name for name, value in tags.items())

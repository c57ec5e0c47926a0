"""What staff may ask of a tenant's running service: the buttons and what follows."""

from django.urls import reverse
from django.utils.translation import gettext_lazy

from apps.console.actions import Action
from apps.orders.models import Service
from apps.orders.states import ServiceState
from apps.orders.verbs import LABELS

STAFF_VERBS = {
    "reboot": gettext_lazy(
        "The operating system is asked to stop; after two minutes the power is cut, then "
        "given back."
    ),
    "power_cycle": gettext_lazy("The power is cut at once and given back."),
    "replace_host": gettext_lazy(
        "The host is given up and quarantined; what is on its disks is lost. The service is "
        "suspended from the recorded loss on, free of charge, and goes on with another host."
    ),
}
WANTED_IN = {
    "reboot": (ServiceState.ACTIVE,),
    "power_cycle": (ServiceState.ACTIVE,),
    "replace_host": (ServiceState.ACTIVE, ServiceState.STOPPED, ServiceState.SUSPENDED),
}


def actions_on(service: Service) -> list[Action]:
    """What fits the service's state."""
    return [
        Action(
            verb,
            str(LABELS[verb]),
            reverse("console:service_act", args=[service.pk, verb]),
            text,
            "danger" if verb == "replace_host" else "primary",
        )
        for verb, text in STAFF_VERBS.items()
        if service.state in WANTED_IN[verb]
    ]

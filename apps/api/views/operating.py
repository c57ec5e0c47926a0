"""What is asked of a running service: power, reinstallation, rescue, its screen, name and tags."""

from uuid import UUID

from apps.api.operations import Asked, Endpoint, acts
from apps.api.selectors import service_in_work
from apps.api.serializers import operating as shapes
from apps.api.serializers.orders import Reason, ServiceInWork, ServiceSerializer
from apps.orders import selectors, services
from apps.orders.models import Service
from apps.provisioning import services as provisioning
from apps.provisioning.ports import Console


def _begin(asked: Asked, service: UUID, verb: str) -> Service:
    provisioning.operate(service_id=service, verb=verb, actor=asked.user, **asked.body)
    return service_in_work(service)


class ServicePowerOff(Endpoint):
    """Switches a server off."""

    @acts("powerOffService", "service.operate", ServiceInWork, body=Reason, status=202)
    def post(self, asked: Asked, service: UUID) -> Service:
        """Switch a server off: stopped once it is really off. Allocated time stays charged."""
        return _begin(asked, service, "power_off")


class ServicePowerOn(Endpoint):
    """Switches a server on."""

    @acts("powerOnService", "service.operate", ServiceInWork, body=Reason, status=202)
    def post(self, asked: Asked, service: UUID) -> Service:
        """Switch a stopped server on: active, and charged, once it is really on."""
        return _begin(asked, service, "power_on")


class ServiceReboot(Endpoint):
    """Reboots a server."""

    @acts("rebootService", "service.operate", ServiceInWork, body=Reason, status=202)
    def post(self, asked: Asked, service: UUID) -> Service:
        """Reboot a server through its operating system; without its help after two minutes."""
        return _begin(asked, service, "reboot")


class ServicePowerCycle(Endpoint):
    """Cuts a server's power and gives it back."""

    @acts("powerCycleService", "service.operate", ServiceInWork, body=Reason, status=202)
    def post(self, asked: Asked, service: UUID) -> Service:
        """Cut the power and give it back, whatever the server is doing."""
        return _begin(asked, service, "power_cycle")


class ServiceReinstallation(Endpoint):
    """Installs a server anew."""

    @acts("reinstallService", "service.operate", ServiceInWork, body=shapes.Reinstall, status=202)
    def post(self, asked: Asked, service: UUID) -> Service:
        """Wipe a server and install it anew under the same service and address. Everything on its
        disks is lost. Image and keys are as they were unless named.
        """
        return _begin(asked, service, "reinstall")


class ServiceRescue(Endpoint):
    """Boots the rescue system."""

    @acts("rescueService", "service.operate", ServiceInWork, body=shapes.Rescue, status=202)
    def post(self, asked: Asked, service: UUID) -> Service:
        """Boot the rescue system beside the server's own disks, with a password of your choice."""
        return _begin(asked, service, "rescue")


class ServiceUnrescue(Endpoint):
    """Leaves the rescue system."""

    @acts("unrescueService", "service.operate", ServiceInWork, body=Reason, status=202)
    def post(self, asked: Asked, service: UUID) -> Service:
        """Boot the server's own system again."""
        return _begin(asked, service, "unrescue")


class ServiceConsole(Endpoint):
    """A server's screen."""

    @acts(
        "openServiceConsole",
        "service.operate",
        shapes.ConsoleSerializer,
        is_keyed=False,
    )
    def post(self, asked: Asked, service: UUID) -> Console:
        """Show where the server's screen is; each look stays in the audit trail."""
        return provisioning.open_console(service_id=service, actor=asked.user)


class ServiceName(Endpoint):
    """What a service is called."""

    @acts("renameService", "service.operate", ServiceSerializer, body=shapes.Name)
    def put(self, asked: Asked, service: UUID) -> Service:
        """Rename a service; its server takes the name when it is next installed."""
        services.rename_service(service_id=service, actor=asked.user, **asked.body)
        return selectors.service_by_id(service)


class ServiceTags(Endpoint):
    """A customer's own names and values."""

    @acts("tagService", "service.operate", ServiceSerializer, body=shapes.Tags)
    def put(self, asked: Asked, service: UUID) -> Service:
        """Set all tags of a service."""
        services.tag_service(service_id=service, actor=asked.user, **asked.body)
        return selectors.service_by_id(service)

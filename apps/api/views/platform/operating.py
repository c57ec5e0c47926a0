"""What staff ask of a tenant's running service, each with a reason."""

from uuid import UUID

from apps.api.operations import Asked, Endpoint, acts
from apps.api.serializers.orders import ProjectedService, Why
from apps.orders.models import ServiceProjection
from apps.provisioning import services as provisioning


def _begin(asked: Asked, service: UUID, verb: str) -> ServiceProjection:
    row = ServiceProjection.objects.get(service=service)
    provisioning.operate_for_tenant(
        tenant=row.tenant, service_id=service, verb=verb, actor=asked.user, **asked.body
    )
    return ServiceProjection.objects.get(service=service)


class ServiceReboot(Endpoint):
    """Reboots a tenant's server."""

    @acts("rebootAnyService", "service.operate", ProjectedService, body=Why, status=202)
    def post(self, asked: Asked, service: UUID) -> ServiceProjection:
        """Reboot a server through its operating system; without its help after two minutes."""
        return _begin(asked, service, "reboot")


class ServicePowerCycle(Endpoint):
    """Cuts the power of a tenant's server and gives it back."""

    @acts("powerCycleAnyService", "service.operate", ProjectedService, body=Why, status=202)
    def post(self, asked: Asked, service: UUID) -> ServiceProjection:
        """Cut the power and give it back, whatever the server is doing."""
        return _begin(asked, service, "power_cycle")


class ServiceHostReplacement(Endpoint):
    """Gives a service another host."""

    @acts("replaceServiceHost", "service.operate", ProjectedService, body=Why, status=202)
    def post(self, asked: Asked, service: UUID) -> ServiceProjection:
        """Give up a lost host: the service is suspended from its recorded loss on, free of charge,
        and goes on with another one. What was on its disks is lost.
        """
        return _begin(asked, service, "replace_host")

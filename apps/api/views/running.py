"""What the customer has: services, their access, history, use and proofs."""

from typing import Any
from uuid import UUID

from django.db.models import QuerySet

from apps.api.operations import Asked, Endpoint, acts, gathers, lists, shows
from apps.api.selectors import service_in_work
from apps.api.serializers import orders as shapes
from apps.metering import selectors as metering
from apps.orders import selectors, services
from apps.orders.models import Fact, Service
from apps.provisioning import selectors as provisioning


class Services(Endpoint):
    """Servers of the organisation."""

    @lists("listServices", "service.view", shapes.ServiceSerializer, query=shapes.ServiceFilters)
    def get(self, asked: Asked) -> QuerySet[Service]:
        """List services, newest first."""
        return selectors.services().filter(**asked.query)


class ServiceItem(Endpoint):
    """One service."""

    @shows("showService", "service.view", shapes.ServiceInWork)
    def get(self, asked: Asked, service: UUID) -> Service:
        """Show a service and the work under way on it."""
        return service_in_work(service)


class ServiceTermination(Endpoint):
    """Ends a service."""

    @acts(
        "terminateService",
        "service.terminate",
        shapes.ServiceInWork,
        body=shapes.Termination,
        status=202,
    )
    def post(self, asked: Asked, service: UUID) -> Service:
        """End a service: charging stops now, its server is wiped. Everything on it is lost."""
        services.terminate_service(service_id=service, actor=asked.user, **asked.body)
        return service_in_work(service)


class ServiceExtension(Endpoint):
    """Until when a service runs."""

    @acts("extendService", "service.terminate", shapes.ServiceInWork, body=shapes.Extension)
    def post(self, asked: Asked, service: UUID) -> Service:
        """Lengthen or shorten a service. At its end it is terminated by itself; warnings come a
        week, a day and an hour before.
        """
        services.set_end(service_id=service, actor=asked.user, **asked.body)
        return service_in_work(service)


class ServiceProtection(Endpoint):
    """Guards a service against termination."""

    @acts("protectService", "service.terminate", shapes.ServiceSerializer, body=shapes.Protection)
    def put(self, asked: Asked, service: UUID) -> Service:
        """Put termination protection on or take it off."""
        services.protect_service(service_id=service, actor=asked.user, **asked.body)
        return selectors.service_by_id(service)


class ServiceAccess(Endpoint):
    """The way into a service."""

    @shows("showServiceAccess", "service.view", shapes.AccessSerializer)
    def get(self, asked: Asked, service: UUID) -> dict[str, Any]:
        """Show how to reach a service; empty until it is ready."""
        found = selectors.service_by_id(service)
        way = f"ssh {found.login}@{found.address}" if found.address else ""
        return {
            "address": found.address,
            "login": found.login,
            "host_keys": found.host_keys,
            "ssh_command": way,
        }


class ServiceStates(Endpoint):
    """The ledger of a service."""

    @gathers("listServiceStates", "service.view", shapes.StateSerializer)
    def get(self, asked: Asked, service: UUID) -> QuerySet[Fact]:
        """List the recorded states of a service, oldest first: the basis of its bill."""
        return selectors.facts_of(selectors.service_by_id(service).pk)


class ServiceUsage(Endpoint):
    """The charged time of a service."""

    @gathers("listServiceUsage", "usage.view", shapes.IntervalSerializer, query=shapes.Span)
    def get(self, asked: Asked, service: UUID) -> list[metering.Interval]:
        """List the charged intervals of a service, the running one up to now."""
        found = selectors.service_by_id(service)
        return metering.usage(services=[found.pk], **asked.query)


class ServiceHealth(Endpoint):
    """What is known of a service's health."""

    @shows("showServiceHealth", "service.view", shapes.HealthSerializer)
    def get(self, asked: Asked, service: UUID) -> dict[str, Any]:
        """Show what goes on in a service, and what its server proved of itself."""
        found = selectors.service_by_id(service)
        return {
            "status": found.state,
            "condition": found.condition,
            "status_reason": found.condition_detail,
            "ready_at": found.ready_at,
            "evidence": provisioning.evidence_of(found.pk),
        }

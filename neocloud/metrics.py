"""`/metrics` for Prometheus: work, capacity, deliveries; counted when asked, for
whoever has the token.
"""

import hmac
from collections.abc import Iterator
from typing import Any

from django.conf import settings
from django.db.models import Count, QuerySet
from django.http import Http404, HttpRequest, HttpResponse
from django.urls import path
from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, generate_latest
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.metrics_core import Metric

from apps.core import clock
from apps.core.models import OutboxEvent
from apps.inventory.models import Node, Site
from apps.orders.models import OrderProjection, QueueEntry, ServiceProjection
from apps.provisioning.models import Run, RunStep
from apps.provisioning.states import StepStatus


class _Figures:
    """The figures of this moment; eight statements, however large the fleet."""

    def collect(self) -> Iterator[Metric]:
        """One family a figure."""
        yield _by("neocloud_orders", "Orders by status", OrderProjection.objects, "status")
        yield _by("neocloud_services", "Services by state", ServiceProjection.objects, "state")
        yield _by("neocloud_runs", "Runs by status", Run.objects, "status")
        yield _by(
            "neocloud_nodes", "Nodes by site and status", Node.objects, "site__code", "status"
        )
        yield _one(
            "neocloud_orders_waiting", "Orders in queue", QueueEntry.objects.filter(left_at=None)
        )
        yield _one(
            "neocloud_leaks",
            "Steps that could not be undone",
            RunStep.objects.filter(status=StepStatus.LEAKED),
        )
        yield _one(
            "neocloud_sites_silent",
            "Sites that do not answer",
            Site.objects.exclude(failing_since=None),
        )
        age = GaugeMetricFamily(
            "neocloud_outbox_oldest_seconds", "Age of the oldest event not delivered"
        )
        oldest = OutboxEvent.objects.filter(delivered_at=None).order_by("id").first()
        age.add_metric([], (clock.now() - oldest.created_at).total_seconds() if oldest else 0.0)
        yield age


def _by(name: str, text: str, rows: Any, *labels: str) -> Metric:
    family = GaugeMetricFamily(name, text, labels=[label.split("__")[0] for label in labels])
    for row in rows.values_list(*labels).annotate(n=Count("pk")).order_by(*labels):
        family.add_metric([str(value) for value in row[:-1]], row[-1])
    return family


def _one(name: str, text: str, rows: QuerySet[Any]) -> Metric:
    family = GaugeMetricFamily(name, text)
    family.add_metric([], rows.count())
    return family


def metrics(request: HttpRequest) -> HttpResponse:
    """The figures in Prometheus' text form; 404 without the right bearer token."""
    given = request.headers.get("Authorization", "").removeprefix("Bearer ")
    wanted = settings.NEOCLOUD_METRICS_TOKEN
    if not wanted or not hmac.compare_digest(given.encode(), wanted.encode()):
        raise Http404
    registry = CollectorRegistry()
    registry.register(_Figures())
    return HttpResponse(generate_latest(registry), content_type=CONTENT_TYPE_LATEST)


urlpatterns = [path("metrics", metrics, name="metrics")]

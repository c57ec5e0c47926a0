"""What can be had, what it costs, and having it: images, offerings, quotes, orders."""

from uuid import UUID

from django.db.models import QuerySet

from apps.api.operations import Asked, Endpoint, acts, gathers, lists, shows
from apps.api.selectors import offering_now, offerings_now, order_in_work
from apps.api.serializers import catalog as catalog_shapes
from apps.api.serializers import orders as shapes
from apps.catalog.models import Image, Offering
from apps.orders import selectors, services
from apps.orders.models import Order, Quote


class Images(Endpoint):
    """Operating systems."""

    @gathers("listImages", "catalog.view", catalog_shapes.ImageSerializer)
    def get(self, asked: Asked) -> QuerySet[Image]:
        """List the images servers can be deployed with."""
        return Image.objects.filter(is_retired=False).order_by("code")


class Offerings(Endpoint):
    """Products."""

    @gathers("listOfferings", "catalog.view", catalog_shapes.PricedOffering)
    def get(self, asked: Asked) -> list[Offering]:
        """List what can be ordered, with the price in force for you and the servers free now."""
        return offerings_now()


class OfferingItem(Endpoint):
    """One product."""

    @shows("showOffering", "catalog.view", catalog_shapes.PricedOffering)
    def get(self, asked: Asked, sku: str) -> Offering:
        """Show one product with its price and the servers free now."""
        return offering_now(sku)


class Quotes(Endpoint):
    """Terms."""

    @lists("listQuotes", "order.view", shapes.QuoteSerializer)
    def get(self, asked: Asked) -> QuerySet[Quote]:
        """List the quotes that were made, newest first."""
        return Quote.objects.all()

    @acts("createQuote", "order.place", shapes.QuoteSerializer, body=shapes.NewQuote, status=201)
    def post(self, asked: Asked) -> Quote:
        """Ask for terms; nothing is held by a quote."""
        return services.make_quote(actor=asked.user, **asked.body)


class QuoteItem(Endpoint):
    """One quote."""

    @shows("showQuote", "order.view", shapes.QuoteSerializer)
    def get(self, asked: Asked, quote: UUID) -> Quote:
        """Show a quote."""
        return selectors.quote_by_id(quote)


class Orders(Endpoint):
    """What was agreed."""

    @lists("listOrders", "order.view", shapes.OrderSerializer, query=shapes.OrderFilters)
    def get(self, asked: Asked) -> QuerySet[Order]:
        """List orders, newest first."""
        return selectors.orders().filter(**asked.query)

    @acts("placeOrder", "order.place", shapes.OrderInWork, body=shapes.NewOrder, status=202)
    def post(self, asked: Asked) -> Order:
        """Confirm a quote.

        Placing the same quote again answers the same order. The servers are made after the answer;
        follow `status`, `progress` and `expected_at` of the order.
        """
        return order_in_work(services.place_order(actor=asked.user, **asked.body).pk)


class OrderItem(Endpoint):
    """One order."""

    @shows("showOrder", "order.view", shapes.OrderInWork)
    def get(self, asked: Asked, order: UUID) -> Order:
        """Show an order with its servers and how far they are."""
        return order_in_work(order)


class OrderCancellation(Endpoint):
    """Ends an order before its servers are in use."""

    @acts("cancelOrder", "order.cancel", shapes.OrderInWork, body=shapes.Reason, status=202)
    def post(self, asked: Asked, order: UUID) -> Order:
        """Cancel an order before any of its servers was ready; what was begun is undone."""
        services.cancel_order(order_id=order, actor=asked.user, **asked.body)
        return order_in_work(order)


class OrderSchedule(Endpoint):
    """Start and end of an order that has not begun."""

    @acts("rescheduleOrder", "order.place", shapes.OrderInWork, body=shapes.Schedule, status=202)
    def put(self, asked: Asked, order: UUID) -> Order:
        """Move start and end of a scheduled order; without a start it begins at once."""
        services.reschedule_order(order_id=order, actor=asked.user, **asked.body)
        return order_in_work(order)

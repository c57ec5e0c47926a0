"""What happens to orders and services when their time comes, and what people are told."""

from apps.orders.handlers import of_orders, of_reservations, of_services, when_due

__all__ = ["of_orders", "of_reservations", "of_services", "when_due"]

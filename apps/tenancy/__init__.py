"""Tenants: their schemas, the only schema switch, the router, the outbox relay."""

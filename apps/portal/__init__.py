"""Pages of tenants."""

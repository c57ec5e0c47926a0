"""Pages of the finance desk."""

"""The REST face of the same services."""

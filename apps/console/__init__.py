"""Pages of operations staff."""

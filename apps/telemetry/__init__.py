"""What the machines say; informs and never bills."""

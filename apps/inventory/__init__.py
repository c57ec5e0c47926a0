"""What we own: sites, nodes, GPUs, addresses, allocations."""

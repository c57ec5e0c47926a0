"""What ./dev stands on: the stores, the lab and the product's processes. Standard library only."""

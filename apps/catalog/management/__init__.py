"""Command line of the catalogue."""

"""The apps of NeoCloud OS, layered as docs/architecture.md shows."""

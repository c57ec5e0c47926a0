"""Intervals and usage, derived from facts."""

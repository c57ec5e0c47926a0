"""Telling people: mail and in-app."""

"""Belief and reality of a site, compared both ways: what differs is fixed by policy or shown."""

from apps.provisioning.engine.reconciler.fixing import advance_fix, due_fixes
from apps.provisioning.engine.reconciler.looking import due_sites, hurry, look

__all__ = ["advance_fix", "due_fixes", "due_sites", "hurry", "look"]

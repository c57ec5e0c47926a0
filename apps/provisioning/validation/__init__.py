"""“Validate this site”: what it needs to sell, asked component by component; a trial on request."""

from apps.provisioning.validation.checking import validate_site
from apps.provisioning.validation.trial import advance_check, due_checks

__all__ = ["advance_check", "due_checks", "validate_site"]

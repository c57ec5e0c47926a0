"""A password its customer chose for a rescue system: sealed until the site has it, then gone."""

from uuid import UUID

from apps.core import secrets
from apps.core.errors import Refused
from apps.core.models import Secret
from apps.provisioning.models import Run

_TABLE = "provisioning_run"


def keep_password(run: Run, password: str) -> None:
    """Seal it for one run; inside the tenant and the transaction that makes the run."""
    sealed = secrets.encrypt(
        password.encode(), owner=str(run.tenant), table=_TABLE, row=str(run.pk)
    )
    Secret.objects.create(name=_name(run.pk), sealed=sealed)


def password_for(run: Run) -> str:
    """The password of a run that has not used it up. Raises Refused when there is none."""
    secret = Secret.objects.filter(name=_name(run.pk)).first()
    if secret is None:
        raise Refused("the password of the rescue system is gone; ask for it anew")
    return secrets.decrypt(
        secret.sealed, owner=str(run.tenant), table=_TABLE, row=str(run.pk)
    ).decode()


def forget_password(run: Run) -> None:
    """Nobody keeps it; safe to repeat."""
    Secret.objects.filter(name=_name(run.pk)).delete()


def _name(run: UUID) -> str:
    return f"rescue {run}"

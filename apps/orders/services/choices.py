"""What somebody chose when ordering, checked: name, project, image, keys."""

import re
from collections.abc import Iterable
from datetime import timedelta
from uuid import UUID

from apps.accounts import ssh_keys
from apps.accounts.models import Project, SSHKey, User
from apps.accounts.selectors import projects_of
from apps.catalog.models import Image, Offering
from apps.orders.errors import (
    NoKeys,
    UnknownKey,
    UnknownProject,
    WrongChoice,
    WrongImage,
    WrongName,
    WrongPatience,
)
from apps.orders.models import IfUnavailable

SHORTEST_WAIT, LONGEST_WAIT = timedelta(hours=1), timedelta(days=90)
LONGEST_HOURS = LONGEST_WAIT // SHORTEST_WAIT
NAME = re.compile(r"[A-Za-z][A-Za-z0-9-]{0,59}")


def name_of(name: str) -> str:
    """A name that can be a host name. Raises WrongName."""
    if not NAME.fullmatch(name) or name.endswith("-"):
        raise WrongName(asked=name[:80], field="name")
    return name


def project_of(project_id: UUID, actor: User) -> Project:
    """An open project the person works in; who manages projects works in all of them."""
    open_ones = Project.objects.filter(archived_at=None)
    if not actor.may("project.manage"):
        open_ones = projects_of(actor)
    project = open_ones.filter(pk=project_id).first()
    if project is None:
        known = ", ".join(open_ones.order_by("name").values_list("name", flat=True)) or "—"
        raise UnknownProject(project=project_id, known=known, field="project")
    return project


def image_of(offering: Offering, code: str) -> Image:
    """One of the offering's images, the first unless one is named. Raises WrongImage."""
    images = list(
        offering.images.filter(is_retired=False).order_by("offeringimage__position", "code")
    )
    for image in images:
        if code in ("", image.code):
            return image
    raise WrongImage(
        sku=offering.sku, image=code, known=", ".join(one.code for one in images), field="image"
    )


def keys_of(key_ids: Iterable[UUID], pasted: Iterable[str]) -> list[str]:
    """Public keys, kept and pasted ones, each once. Raises UnknownKey or NoKeys."""
    wanted = list(dict.fromkeys(key_ids))
    stored = {key.pk: key.public_key for key in SSHKey.objects.filter(pk__in=wanted)}
    for key_id in wanted:
        if key_id not in stored:
            raise UnknownKey(key=key_id, field="ssh_keys")
    keys = [stored[key_id] for key_id in wanted]
    keys += [ssh_keys.parse(text, field="ssh_public_keys").text for text in pasted if text.strip()]
    if not keys:
        raise NoKeys(field="ssh_keys")
    return list(dict.fromkeys(keys))


def check_patience(patience: timedelta | None) -> None:
    """How long an order may wait for capacity. Raises WrongPatience."""
    if patience is not None and not SHORTEST_WAIT <= patience <= LONGEST_WAIT:
        raise WrongPatience(
            most=LONGEST_HOURS,
            asked=patience // SHORTEST_WAIT,
            field="queue_hours",
        )


def choice_of(if_unavailable: str) -> str:
    """What to do without capacity. Raises WrongChoice."""
    if if_unavailable not in IfUnavailable.values:
        raise WrongChoice(
            name="if_unavailable",
            known=", ".join(IfUnavailable.values),
            asked=if_unavailable,
            field="if_unavailable",
        )
    return if_unavailable

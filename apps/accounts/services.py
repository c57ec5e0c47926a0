"""Every change to people, projects and keys."""

from datetime import timedelta
from typing import Any
from uuid import UUID

from django.conf import settings
from django.contrib.auth.password_validation import validate_password
from django.core.exceptions import ValidationError
from django.core.validators import validate_email
from django.db import IntegrityError, transaction
from django.urls import reverse
from django.utils.translation import gettext_lazy as _

from apps.accounts import ssh_keys
from apps.accounts.access import require
from apps.accounts.errors import (
    ExpiryOutOfRange,
    GrantsTooMuch,
    KeyExists,
    LastOfFirst,
    MissingName,
    NoSuchKey,
    NoSuchPerson,
    NoSuchProject,
    PersonExists,
    ProjectExists,
    WrongSide,
)
from apps.accounts.models import AccessKey, Project, ProjectMember, SSHKey, User
from apps.accounts.roles import FIRST_ROLES, PLATFORM_ROLES, TENANT_ROLES, Role, reaches
from apps.accounts.selectors import admins_to_tell, recipient_of
from apps.audit import services as audit
from apps.core import clock
from apps.core.errors import Forbidden, Invalid
from apps.core.realms import PLATFORM, speaker
from apps.core.secrets import new_token, token_hash
from apps.notices import services as notices

TOKEN_PREFIX = "neo"  # noqa: S105 - tells a person who finds a token what it is
LONGEST_KEY_DAYS = 365
_USED_EVERY = timedelta(minutes=1)


def create_person(
    *,
    email: str,
    name: str,
    role: str,
    actor: User | None,
    language: str = "en",
    password: str | None = None,
) -> User:
    """Let somebody in on this side; without a password they are told by mail how to set one.

    Raises WrongSide, GrantsTooMuch, PersonExists, or Invalid for a malformed field.
    """
    _may_grant(actor, role, about=email)
    email = _email(email)
    user = User(email=email, name=_name(name, 120), role=role, language=_language(language))
    if password is None:
        user.set_unusable_password()
    else:
        _check_password(password, user)
        user.set_password(password)
    try:
        with transaction.atomic():
            user.save(force_insert=True)
            audit.record(actor, "person.created", user, after=_facts(user))
            if password is None:
                _invite(user, actor)
    except IntegrityError as error:
        raise PersonExists(field="email", email=email) from error
    return user


def change_role(*, person_id: UUID | str, role: str, actor: User | None) -> User:
    """Give a person another role of this side; the last owner keeps theirs."""
    person = _found(person_id)
    _may_grant(actor, role, about=person.email, holder=person)
    with transaction.atomic():
        person = _locked(person_id)
        _keeps_one_first(person, unless=role in FIRST_ROLES)
        before = _facts(person)
        person.role = role
        person.save(update_fields=["role"])
        audit.record(actor, "person.role_changed", person, before=before, after=_facts(person))
    return person


def deactivate_person(*, person_id: UUID | str, actor: User | None) -> User:
    """Shut a person out: their sessions end and their access keys stop at the next request."""
    person = _found(person_id)
    _may_grant(actor, person.role, about=person.email, holder=person)
    with transaction.atomic():
        person = _locked(person_id)
        _keeps_one_first(person)
        return _set_active(person, active=False, actor=actor)


def reactivate_person(*, person_id: UUID | str, actor: User | None) -> User:
    """Let a person in again."""
    person = _found(person_id)
    _may_grant(actor, person.role, about=person.email, holder=person)
    with transaction.atomic():
        return _set_active(_locked(person_id), active=True, actor=actor)


def set_language(*, person: User, language: str) -> User:
    """Remember the language a person reads."""
    language = _language(language)
    if person.language != language:
        with transaction.atomic():
            before = {"language": person.language}
            person.language = language
            person.save(update_fields=["language"])
            audit.record(
                person, "person.language_set", person, before=before, after={"language": language}
            )
    return person


def create_project(*, name: str, actor: User | None, description: str = "") -> Project:
    """Add a part of the organisation to order and be charged by. Raises ProjectExists."""
    _allowed(actor, "project.manage")
    project = Project(name=_name(name, 80), description=description.strip()[:300])
    try:
        with transaction.atomic():
            project.save(force_insert=True)
            audit.record(actor, "project.created", project, after={"name": project.name})
    except IntegrityError as error:
        raise ProjectExists(field="name", name=project.name) from error
    return project


@transaction.atomic
def archive_project(*, project_id: UUID | str, actor: User | None) -> Project:
    """Close a project for new orders; what runs in it goes on."""
    _allowed(actor, "project.manage")
    project = _project(project_id)
    if project.archived_at is None:
        project.archived_at = clock.now()
        project.save(update_fields=["archived_at"])
        audit.record(actor, "project.archived", project)
    return project


@transaction.atomic
def add_member(
    *, project_id: UUID | str, person_id: UUID | str, actor: User | None
) -> ProjectMember:
    """Put a person into a project; again is no change."""
    _allowed(actor, "project.manage")
    project, person = _project(project_id), _found(person_id)
    member, is_new = ProjectMember.objects.get_or_create(project=project, user=person)
    if is_new:
        audit.record(actor, "project.member_added", project, after={"person": str(person.pk)})
    return member


@transaction.atomic
def remove_member(*, project_id: UUID | str, person_id: UUID | str, actor: User | None) -> None:
    """Take a person out of a project; again is no change."""
    _allowed(actor, "project.manage")
    project = _project(project_id)
    gone, _kinds = ProjectMember.objects.filter(project=project, user_id=person_id).delete()
    if gone:
        audit.record(actor, "project.member_removed", project, before={"person": str(person_id)})


def add_ssh_key(*, name: str, public_key: str, actor: User) -> SSHKey:
    """Store a public key of the actor. Raises MalformedKey or KeyExists."""
    require(actor, "ssh_key.manage")
    read = ssh_keys.parse(public_key)
    known = SSHKey.objects.filter(user=actor, fingerprint=read.fingerprint).first()
    if known is not None:
        raise KeyExists(field="public_key", name=known.name)
    key = SSHKey(
        user=actor,
        name=_name(name or read.comment, 80),
        public_key=read.text,
        fingerprint=read.fingerprint,
    )
    try:
        with transaction.atomic():
            key.save(force_insert=True)
            audit.record(actor, "ssh_key.added", key, after={"fingerprint": key.fingerprint})
    except IntegrityError as error:
        raise KeyExists(field="public_key", name=key.name) from error
    return key


@transaction.atomic
def remove_ssh_key(*, key_id: UUID | str, actor: User) -> None:
    """Forget a public key of the actor; servers that have it keep it. Raises NoSuchKey."""
    require(actor, "ssh_key.manage")
    key = SSHKey.objects.select_for_update().filter(pk=key_id, user=actor).first()
    if key is None:
        raise NoSuchKey()
    audit.record(actor, "ssh_key.removed", key, before={"fingerprint": key.fingerprint})
    key.delete()


@transaction.atomic
def create_access_key(*, name: str, actor: User, days: int = 90) -> tuple[AccessKey, str]:
    """A key for programs and its token; the token is shown here once and stored nowhere."""
    require(actor, "access_key.manage")
    if not 1 <= days <= LONGEST_KEY_DAYS:
        raise ExpiryOutOfRange(field="days", days=days, longest=LONGEST_KEY_DAYS)
    token = new_token(TOKEN_PREFIX)
    key = AccessKey.objects.create(
        user=actor,
        name=_name(name, 80),
        prefix=token[: len(TOKEN_PREFIX) + 7],
        token_hash=token_hash(token),
        expires_at=clock.now() + timedelta(days=days),
    )
    audit.record(actor, "access_key.created", key, after={"expires_at": key.expires_at.isoformat()})
    return key, token


@transaction.atomic
def revoke_access_key(*, key_id: UUID | str, actor: User) -> AccessKey:
    """End a key of the actor now; again is no change. Raises NoSuchKey."""
    key = AccessKey.objects.select_for_update().filter(pk=key_id, user=actor).first()
    if key is None:
        raise NoSuchKey()
    if key.revoked_at is None:
        key.revoked_at = clock.now()
        key.save(update_fields=["revoked_at"])
        audit.record(actor, "access_key.revoked", key)
    return key


def person_of_token(token: str) -> User | None:
    """Who a bearer token acts as on this side; None when unknown, ended, revoked or shut out."""
    key = AccessKey.objects.select_related("user").filter(token_hash=token_hash(token)).first()
    if key is None or key.revoked_at is not None or not key.user.is_active:
        return None
    now = clock.now()
    if key.expires_at <= now:
        return None
    if key.last_used_at is None or now - key.last_used_at > _USED_EVERY:
        AccessKey.objects.filter(pk=key.pk).update(last_used_at=now)
    return key.user


def tell_admins(
    *, kind: str, dedup_key: str, subject: Any, body: Any, link: str = "", **facts: object
) -> None:
    """Tell every owner and administrator of this side, each in their language, once."""
    for recipient in admins_to_tell():
        notices.tell(
            to=recipient,
            kind=kind,
            dedup_key=dedup_key,
            subject=subject,
            body=body,
            link=link,
            **facts,
        )


def _may_grant(actor: User | None, role: str, *, about: str, holder: User | None = None) -> None:
    """Refuse a role of the other side or above the actor's, and changing who stands above."""
    possible = PLATFORM_ROLES if speaker() == PLATFORM else TENANT_ROLES
    reason: Forbidden | Invalid | None = None
    if role not in possible:
        labels = ", ".join(str(one.label) for one in possible)
        reason = WrongSide(field="role", role=role, possible=labels)
    elif actor is not None:
        reason = _refusal(actor, role, holder)
    if reason is not None:
        with transaction.atomic():
            audit.record(
                actor,
                "person.grant_refused",
                ("user", holder.pk if holder else "", about),
                result="refused",
                reason=reason.code,
                after={"role": role},
            )
        raise reason


def _refusal(actor: User, role: str, holder: User | None) -> Forbidden | None:
    permission = "staff.manage" if speaker() == PLATFORM else "member.manage"
    if actor.is_staff_side and speaker() != PLATFORM:
        permission = "tenant.manage"
    try:
        require(actor, permission)
    except Forbidden as error:
        return error
    if actor.is_staff_side and speaker() != PLATFORM:
        return None
    for wanted in filter(None, (role, holder.role if holder else "")):
        if not reaches(actor.role, wanted):
            return GrantsTooMuch(role=Role(actor.role).label, wanted=Role(wanted).label)
    return None


def _allowed(actor: User | None, permission: str) -> None:
    if actor is not None:
        require(actor, permission)


def _keeps_one_first(person: User, *, unless: bool = False) -> None:
    """Lock all of the first role in one order, so two cannot step down at once."""
    if unless or person.role not in FIRST_ROLES or not person.is_active:
        return
    first = User.objects.select_for_update().filter(role=person.role, is_active=True)
    others = [one for one in first.order_by("id") if one.pk != person.pk]
    if not others:
        raise LastOfFirst(name=person.name, role=Role(person.role).label)


def _set_active(person: User, *, active: bool, actor: User | None) -> User:
    if person.is_active != active:
        person.is_active = active
        person.save(update_fields=["is_active"])
        audit.record(
            actor,
            "person.reactivated" if active else "person.deactivated",
            person,
            before={"is_active": not active},
            after={"is_active": active},
        )
    return person


def _invite(user: User, actor: User | None) -> None:
    notices.tell(
        to=recipient_of(user),
        kind="person.invited",
        dedup_key=f"invited:{user.pk}",
        subject=_("You were invited to NeoCloud OS"),
        body=_(
            "{inviter} gave you the role {role}. Open the link, enter this mail address and set a"
            " password."
        ),
        link=reverse("account_reset_password"),
        inviter=str(actor) if actor is not None else "NeoCloud OS",
        role=Role(user.role).label,
    )


def _found(person_id: UUID | str) -> User:
    person: User | None = User.objects.filter(pk=person_id).first()
    if person is None:
        raise NoSuchPerson()
    return person


def _locked(person_id: UUID | str) -> User:
    """The person under a lock, after those of the first roles, in one order everywhere."""
    list(User.objects.select_for_update().filter(role__in=FIRST_ROLES).order_by("id"))
    person: User | None = User.objects.select_for_update().filter(pk=person_id).first()
    if person is None:
        raise NoSuchPerson()
    return person


def _project(project_id: UUID | str) -> Project:
    project = Project.objects.select_for_update().filter(pk=project_id).first()
    if project is None:
        raise NoSuchProject()
    return project


def _facts(user: User) -> dict[str, Any]:
    return {"email": user.email, "name": user.name, "role": user.role}


def _name(text: str, longest: int) -> str:
    text = text.strip()
    if not text or len(text) > longest or not text.isprintable():
        raise MissingName(field="name", longest=longest)
    return text


def _email(text: str) -> str:
    text = text.strip()
    try:
        validate_email(text)
    except ValidationError:
        raise Invalid(
            _("“{email}” is not a mail address. Write it as name@example.com."),
            field="email",
            code="email_malformed",
            email=text[:100],
        ) from None
    return text


def _language(code: str) -> str:
    known = [one for one, _label in settings.LANGUAGES]
    if code not in known:
        raise Invalid(
            _("“{language}” is not a language here. Choose one of: {possible}."),
            field="language",
            code="language_unknown",
            language=code[:20],
            possible=", ".join(known),
        )
    return code


def _check_password(password: str, user: User) -> None:
    try:
        validate_password(password, user)
    except ValidationError as error:
        text = " ".join(error.messages).replace("{", "{{").replace("}", "}}")
        raise Invalid(text, field="password", code="password_weak") from None

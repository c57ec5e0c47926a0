"""What can go wrong with people, roles and keys."""

from django.utils.translation import gettext_lazy as _

from apps.core.errors import Conflict, Forbidden, Invalid, NotFound


class RoleForbids(Forbidden):
    """The person's role does not hold what is needed; says which roles do."""

    code = "role_forbids"
    message = _("This needs the permission “{permission}”; your role is {role}. Ask: {holders}.")


class GrantsTooMuch(Forbidden):
    """Somebody gave a role above their own, or changed a person who stands above them."""

    code = "grants_too_much"
    message = _("As {role} you cannot give or take the role {wanted}. Ask a person with that role.")


class WrongSide(Invalid):
    """The role exists, but not here."""

    code = "role_of_other_side"
    message = _("“{role}” is not a role here. Choose one of: {possible}.")


class PersonExists(Conflict):
    """The mail address is taken."""

    code = "person_exists"
    message = _("A person with the address {email} exists already. Use another address.")


class LastOfFirst(Conflict):
    """The last owner, or the last platform administrator, would be gone."""

    code = "last_owner"
    message = _("{name} is the last {role}. Give that role to somebody else first.")


class NoSuchPerson(NotFound):
    """There is no such person on this side."""

    code = "person_not_found"
    message = _("There is no such person here.")


class NoSuchProject(NotFound):
    """There is no such project in this tenant."""

    code = "project_not_found"
    message = _("There is no such project here.")


class NoSuchKey(NotFound):
    """There is no such key, or it is somebody else's."""

    code = "key_not_found"
    message = _("There is no such key, or it is not yours.")


class ProjectExists(Conflict):
    """The name is taken."""

    code = "project_exists"
    message = _("A project named “{name}” exists already. Choose another name.")


class KeyExists(Conflict):
    """The same public key is already there."""

    code = "ssh_key_exists"
    message = _("This key is already stored under the name “{name}”.")


class MalformedKey(Invalid):
    """What was pasted is not a public key we put on servers."""

    code = "ssh_key_malformed"
    message = _(
        "This is not an OpenSSH public key: {why}. Paste one line such as “{example}”; allowed are"
        " ssh-ed25519, ecdsa-sha2-nistp256/384/521 and ssh-rsa of at least {bits} bits."
    )


class ExpiryOutOfRange(Invalid):
    """A key must end, and not too late."""

    code = "expiry_out_of_range"
    message = _("An access key lives 1 to {longest} days; you asked for {days}.")


class MissingName(Invalid):
    """A name is empty or too long."""

    code = "name_missing"
    message = _("Give a name of 1 to {longest} characters.")

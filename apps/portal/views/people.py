"""Members, projects and keys."""

from uuid import UUID

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.utils.translation import gettext as _
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_GET, require_http_methods, require_POST

from apps.accounts import selectors, services
from apps.accounts.access import needs, person
from apps.core import clock
from apps.orders import selectors as orders
from apps.orders import services as order_services
from apps.portal import cells
from apps.portal.answers import cleaned, go
from apps.portal.forms import AccessKeyForm, LimitForm, PersonForm, ProjectForm, SSHKeyForm


@require_http_methods(["GET", "POST"])
@needs("member.manage")
def members(request: HttpRequest) -> HttpResponse:
    """Everybody of the organisation; POST invites one more."""
    actor = person(request)
    form = PersonForm(request.POST or None, actor=actor)
    if request.method == "POST":
        invited = services.create_person(**cleaned(form), actor=actor)
        told = _("{name} is invited by mail.").format(name=invited.name)
        return go(request, reverse("portal:members"), told)
    people = list(selectors.people())
    context = {"form": form, "people": people, "roles": form.fields["role"].choices}  # type: ignore[attr-defined]
    return render(request, "portal/members.html", context)


@require_POST
@needs("member.manage")
def member_role(request: HttpRequest, person_id: UUID) -> HttpResponse:
    """Give a person another role."""
    changed = services.change_role(
        person_id=person_id, role=request.POST.get("role", ""), actor=person(request)
    )
    told = _("{name} is now {role}.").format(name=changed.name, role=changed.get_role_display())
    return go(request, reverse("portal:members"), told)


@require_POST
@needs("member.manage")
def member_access(request: HttpRequest, person_id: UUID) -> HttpResponse:
    """Shut a person out, or let them in again."""
    if request.POST.get("active") == "yes":
        services.reactivate_person(person_id=person_id, actor=person(request))
    else:
        services.deactivate_person(person_id=person_id, actor=person(request))
    return go(request, reverse("portal:members"), _("Saved."))


@require_http_methods(["GET", "POST"])
@needs("project.view")
def projects(request: HttpRequest) -> HttpResponse:
    """The projects with what they use; POST makes one."""
    actor = person(request)
    form = ProjectForm(request.POST or None)
    if request.method == "POST":
        made = services.create_project(**cleaned(form), actor=actor)
        told = _("Project {name} is made.").format(name=made.name)
        return go(request, reverse("portal:projects"), told)
    shown = [cells.with_dialog(project) for project in selectors.projects()]
    context = {"form": form, "projects": shown, "may_manage": actor.may("project.manage")}
    return render(request, "portal/projects.html", context)


@require_POST
@needs("project.manage")
def project_archive(request: HttpRequest, project_id: UUID) -> HttpResponse:
    """Close a project for new orders."""
    archived = services.archive_project(project_id=project_id, actor=person(request))
    told = _("Project {name} is archived.").format(name=archived.name)
    return go(request, reverse("portal:projects"), told)


@require_http_methods(["GET", "POST"])
@needs("ssh_key.manage")
def ssh_keys(request: HttpRequest) -> HttpResponse:
    """A person's own SSH keys; POST adds one."""
    actor = person(request)
    form = SSHKeyForm(request.POST or None)
    if request.method == "POST":
        services.add_ssh_key(**cleaned(form), actor=actor)
        return go(request, reverse("portal:ssh_keys"), _("The key is kept."))
    keys = list(selectors.ssh_keys_of(actor))
    return render(request, "portal/ssh_keys.html", {"form": form, "keys": keys})


@require_POST
@needs("ssh_key.manage")
def ssh_key_remove(request: HttpRequest, key_id: UUID) -> HttpResponse:
    """Forget a key; servers keep what they were given."""
    services.remove_ssh_key(key_id=key_id, actor=person(request))
    return go(request, reverse("portal:ssh_keys"), _("The key is removed."))


@never_cache
@require_http_methods(["GET", "POST"])
@needs("access_key.manage")
def access_keys(request: HttpRequest) -> HttpResponse:
    """A person's keys for programs; POST makes one and shows its token this once."""
    actor = person(request)
    form = AccessKeyForm(request.POST or None)
    token = ""
    if request.method == "POST":
        _key, token = services.create_access_key(**cleaned(form), actor=actor)
        form = AccessKeyForm()
    keys = list(selectors.access_keys_of(actor))
    context = {"form": form, "keys": keys, "token": token, "now": clock.now()}
    return render(request, "portal/access_keys.html", context)


@require_POST
@needs("access_key.manage")
def access_key_revoke(request: HttpRequest, key_id: UUID) -> HttpResponse:
    """End a key now."""
    services.revoke_access_key(key_id=key_id, actor=person(request))
    return go(request, reverse("portal:access_keys"), _("The key no longer works."))


@require_GET
@needs("service.view")
def quotas(request: HttpRequest) -> HttpResponse:
    """Limits and what is used of them."""
    context = {
        "use": [cells.quota_view(row) for row in orders.quota_use()],
        "projects": orders.project_use(),
        "may_manage": person(request).may("quota.manage"),
    }
    return render(request, "portal/quotas.html", context)


@require_POST
@needs("quota.manage")
def project_limit(request: HttpRequest, project_id: UUID) -> HttpResponse:
    """Set or take away a project's own share."""
    data = cleaned(LimitForm(request.POST))
    order_services.set_project_limit(
        project_id=project_id, max_gpus=data["max_gpus"], actor=person(request)
    )
    return go(request, reverse("portal:quotas"), _("Saved."))

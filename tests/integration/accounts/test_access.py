"""The gate of views: nobody goes to the sign-in page as a whole, a wrong role reads who may."""

import json

from django.contrib.auth.models import AnonymousUser
from django.http import HttpResponse
from django.test import RequestFactory

from apps.accounts.access import needs
from apps.accounts.roles import Role
from neocloud.errors import ErrorMiddleware
from tests.people import a_person, host


@needs("member.manage")
def members(request):
    return HttpResponse("members")


def _ask(user, path="/members/?page=2", **headers):
    request = RequestFactory(headers={"host": host("acme")} | headers).get(path)
    request.user = user
    try:
        return members(request)
    except Exception as error:
        return ErrorMiddleware(members).process_exception(request, error)


def test_a_person_with_the_permission_passes(acme):
    assert _ask(a_person(Role.ADMIN)).content == b"members"


def test_nobody_is_sent_to_sign_in_with_the_way_back(acme):
    answer = _ask(AnonymousUser())
    assert answer.status_code == 302
    assert answer["Location"] == "/account/login/?next=%2Fmembers%2F%3Fpage%3D2"


def test_a_fragment_sends_the_whole_page_to_sign_in(acme):
    page = f"http://{host('acme')}/members/"
    answer = _ask(AnonymousUser(), **{"HX-Request": "true", "HX-Current-URL": page})
    assert answer["HX-Redirect"] == "/account/login/?next=%2Fmembers%2F"
    assert answer.content == b""


def test_a_wrong_role_reads_the_permission_and_who_holds_it(acme):
    answer = _ask(a_person(Role.VIEWER), path="/api/v1/members")
    problem = json.loads(answer.content)
    assert (answer.status_code, problem["code"]) == (403, "role_forbids")
    assert "“member.manage”" in problem["detail"]
    assert "your role is Viewer. Ask: Owner, Administrator." in problem["detail"]


def test_a_program_without_a_token_gets_401(acme):
    assert _ask(AnonymousUser(), path="/api/v1/members").status_code == 401

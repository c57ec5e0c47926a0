"""A program that uses the API with an access key, and how it reads answers."""

from typing import Any, Self

from apps.accounts.models import User
from apps.accounts.services import create_access_key
from tests.people import Browser, host


class Program:
    """Talks JSON; `user` must live on the side the test is on."""

    def __init__(self, *, side: str = "acme", token: str = "") -> None:
        headers = {"host": host(side)} | ({"authorization": f"Bearer {token}"} if token else {})
        self.client = Browser(headers=headers, enforce_csrf_checks=True)

    @classmethod
    def of(cls, user: User, *, side: str = "acme") -> Self:
        """A program that acts as that person."""
        _key, token = create_access_key(name="tests", actor=user)
        return cls(side=side, token=token)

    @classmethod
    def signed_in(cls, user: User, *, side: str = "acme") -> Self:
        """A page's own script: the person's session, with the CSRF check out of the way."""
        program = cls(side=side)
        program.client = Browser(headers={"host": host(side)})
        program.client.force_login(user)
        return program

    def ask(self, method: str, path: str, body: Any = None, **headers: str) -> Any:
        """Any request; `headers` with underscores for hyphens."""
        given = {name.replace("_", "-"): value for name, value in headers.items()}
        options: dict[str, Any] = {"headers": given}
        if body is not None:
            options |= {"data": body, "content_type": "application/json"}
        return getattr(self.client, method.lower())(f"/api/v1/{path}", **options)

    def get(self, path: str, **query: Any) -> Any:
        """What an address shows, which must be there."""
        response = self.client.get(f"/api/v1/{path}", query)
        assert response.status_code == 200, response.content.decode()
        return response.json()

    def post(self, path: str, body: Any = None, *, status: int = 201, **headers: str) -> Any:
        """The answer to a change, which must have that status."""
        response = self.ask("POST", path, {} if body is None else body, **headers)
        assert response.status_code == status, response.content.decode()
        return response.json()

    def refused(self, method: str, path: str, body: Any = None, *, status: int) -> Any:
        """The problem an address answers with."""
        response = self.ask(method, path, body)
        assert response.status_code == status, response.content.decode()
        assert response["Content-Type"] == "application/problem+json"
        return response.json()

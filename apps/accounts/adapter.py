"""How allauth behaves here: nobody signs up by themselves, people are invited."""

from allauth.account.adapter import DefaultAccountAdapter
from django.http import HttpRequest


class AccountAdapter(DefaultAccountAdapter):  # type: ignore[misc]
    """Sign-up is closed on both sides."""

    def is_open_for_signup(self, request: HttpRequest) -> bool:
        """Never."""
        return False

"""How often one person may ask; the counters live in the cache, apart for each tenant."""

from rest_framework.request import Request
from rest_framework.throttling import SimpleRateThrottle
from rest_framework.views import APIView


class PersonThrottle(SimpleRateThrottle):
    """All requests of one person, whichever key or session they come by."""

    scope = "person"
    rate = "1200/min"

    def get_cache_key(self, request: Request, view: APIView) -> str | None:
        """One counter for each person; nobody gets here unauthenticated."""
        return f"throttle:{self.scope}:{request.user.pk}" if request.user.pk else None


class ChangeThrottle(PersonThrottle):
    """Requests of one person that change something."""

    scope = "change"
    rate = "300/min"

    def get_cache_key(self, request: Request, view: APIView) -> str | None:
        """As for all requests; reading does not count."""
        return super().get_cache_key(request, view) if request.method != "GET" else None

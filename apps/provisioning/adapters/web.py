"""What is fetched over HTTP from our side, as a site or a server would: images, the call-home."""

import hashlib
import urllib.error
import urllib.request
from typing import Any
from uuid import UUID

from apps.core.errors import Refused, SiteUnreachable

SECONDS = 10
LARGEST_READ = 64 * 1024 * 1024  # larger images are only asked for, not read
PIECE = 1024 * 1024
# No proxy of ours: neither a site nor its servers have it.
_direct = urllib.request.build_opener(urllib.request.ProxyHandler({}))


def check_image(source: str, checksum: str) -> str:
    """The image is there and is what the catalogue says. Raises SiteUnreachable or Refused."""
    with _open(source, method="HEAD") as answer:
        size = int(answer.headers.get("Content-Length") or 0)
    if size > LARGEST_READ:
        return f"{size:,} bytes; too large to compare here"
    digest, read = hashlib.sha256(), 0
    with _open(source) as answer:
        while piece := answer.read(PIECE):
            digest.update(piece)
            read += len(piece)
            if read > LARGEST_READ:
                return f"more than {read:,} bytes; too large to compare here"
    if digest.hexdigest() != checksum.lower():
        raise Refused(f"checksum {digest.hexdigest()[:12]}…, expected {checksum[:12]}…")
    return f"{read:,} bytes, checksum as expected"


def check_call_home(url: str) -> str:
    """The call-home address answers as ours does to a report without a token."""
    address = f"{url.rstrip('/')}/{UUID(int=0)}"
    try:
        with _open(address, method="POST", body=b"{}"):
            raise Refused("it takes reports without a token")
    except _Answered as answer:
        if answer.code in (401, 403, 404) and "json" in answer.media_type:
            return f"HTTP {answer.code}"
        raise Refused(f"HTTP {answer.code}: not our call-home") from None


class _Answered(Refused):
    """An answer that is no success."""

    def __init__(self, code: int, kind: str, url: str) -> None:
        super().__init__(f"HTTP {code} from {url}")
        self.code, self.media_type = code, kind


def _open(url: str, *, method: str = "GET", body: bytes | None = None) -> Any:
    if not url.startswith(("http://", "https://")):
        raise Refused(f"not a web address: {url}")
    request = urllib.request.Request(  # noqa: S310 - the scheme is checked above
        url,
        data=body,
        method=method,
        headers={"Content-Type": "application/json", "Accept": "application/json"},
    )
    try:
        return _direct.open(request, timeout=SECONDS)
    except urllib.error.HTTPError as error:
        with error:
            kind = str(error.headers.get("Content-Type") or "")
        raise _Answered(error.code, kind, url) from None
    except (OSError, ValueError) as error:
        raise SiteUnreachable(f"{url}: {error}") from None

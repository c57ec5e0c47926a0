"""The story of an order, told while it happens: request, server, proof, use, end, invoice. Run by
`./dev demo`.

Three people act through the API a customer's program would use: the tenant's owner, an operator,
finance. The last line on standard output is `RESULT key=value …` for programs.
"""

from __future__ import annotations

import argparse
import base64
import os
import secrets
import subprocess
import sys
import time
from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx

ROOT = Path(__file__).resolve().parents[1]
USE_SECONDS = 10
LONGEST = 900.0  # long enough for somebody to crash Ironic or the worker and bring them back
SKU, TRIAL, SITE = "bm.h200.8x", "bm.h200.8x.trial", "lab-1"
BEGAN = time.monotonic()


def tell(text: str) -> None:
    """A line with the time since the start."""
    print(f"{time.monotonic() - BEGAN:6.1f}  {text}", flush=True)


class Person:
    """Somebody signed in at a host, using the API with a session as a browser does."""

    def __init__(self, base_url: str, host: str, email: str) -> None:
        port = urlsplit(base_url).port
        self._http = httpx.Client(
            base_url=base_url,
            headers={"Host": f"{host}:{port}", "Referer": f"http://{host}:{port}/"},
            timeout=30,
            trust_env=False,
        )
        self._http.cookies.set("neo_language", "en")
        page = self._http.get("/account/login/")
        page.raise_for_status()
        answer = self._http.post(
            "/account/login/",
            data={"login": email, "password": os.environ["DEMO_PASSWORD"]} | self._csrf("form"),
        )
        if answer.status_code != 302:
            raise SystemExit(f"{email} could not sign in: HTTP {answer.status_code}")

    def _csrf(self, where: str) -> dict[str, str]:
        token = next(v for k, v in self._cookies().items() if k.startswith("neo_csrf"))
        return {"csrfmiddlewaretoken": token} if where == "form" else {"X-CSRFToken": token}

    def _cookies(self) -> dict[str, str]:
        return {cookie.name: str(cookie.value) for cookie in self._http.cookies.jar}

    def get(self, path: str) -> Any:
        """Read."""
        return self._read(self._http.get("/api/v1" + path, headers=self._session()))

    def post(self, path: str, body: dict[str, Any] | None = None) -> Any:
        """Act, with a key so that a repeat would be harmless."""
        headers = self._session() | self._csrf("header")
        headers["Idempotency-Key"] = secrets.token_hex(8)
        return self._read(self._http.post("/api/v1" + path, json=body or {}, headers=headers))

    def file(self, path: str) -> bytes:
        """Download."""
        answer = self._http.get("/api/v1" + path, headers=self._session())
        answer.raise_for_status()
        return answer.content

    def _session(self) -> dict[str, str]:
        return {"Cookie": "; ".join(f"{name}={value}" for name, value in self._cookies().items())}

    @staticmethod
    def _read(answer: httpx.Response) -> Any:
        if answer.status_code >= 400:
            problem = answer.json()
            raise SystemExit(f"{answer.request.method} {answer.request.url.path}: {problem}")
        return answer.json()


def until(what: Callable[[], Any], limit: float = LONGEST) -> Any:
    """Ask until there is an answer; the story ends when it takes too long."""
    deadline = time.monotonic() + limit
    while time.monotonic() < deadline:
        found = what()
        if found:
            return found
        time.sleep(0.5)
    raise SystemExit("the story takes too long; ./dev up and look at the console's work page")


def story_tenant() -> str:
    """A tenant whose month can be invoiced."""
    done = subprocess.run(
        [sys.executable, "manage.py", "seed_demo", "--story"],
        cwd=ROOT, capture_output=True, text=True, check=False,
    )  # fmt: skip
    if done.returncode:
        raise SystemExit(done.stderr[-2000:])
    return done.stdout.split("story-tenant:")[1].split()[0]


def a_public_key() -> str:
    """An SSH public key whose private half nobody has: the lab's servers are not real."""
    body = b"\x00\x00\x00\x0bssh-ed25519\x00\x00\x00\x20" + secrets.token_bytes(32)
    return "ssh-ed25519 " + base64.b64encode(body).decode() + " demo"


def place(owner: Person, sku: str, name: str) -> dict[str, Any]:
    """Quote and confirm."""
    project = owner.get("/projects")["items"][0]["id"]
    quote = owner.post("/quotes", {"offering": sku, "site": SITE, "quantity": 1})
    price = quote["unit_price"]
    tell(
        f"quote: {quote['offering_name']}, {price['amount']} {price['currency']} per GPU-hour,"
        f" {quote['terms']['hour_total']} {price['currency']} per hour before tax,"
        " billed by the second"
    )
    return dict(
        owner.post(
            "/orders",
            {
                "quote": quote["id"],
                "project": project,
                "name": name,
                "ssh_public_keys": [a_public_key()],
            },
        )
    )


def follow(owner: Person, order: dict[str, Any], wanted: str) -> dict[str, Any]:
    """Tell each step of an order's server until its service reaches a state."""
    said = ""

    def look() -> dict[str, Any] | None:
        nonlocal said
        (service,) = owner.get(f"/orders/{order['id']}")["services"] or [None]
        if service is None:
            return None
        progress = service["progress"]
        if progress and progress["status"] in ("forward", "undoing"):
            words = f"step {progress['step']} of {progress['of']}: {progress['label']}"
            if service["condition"] not in ("", "working"):
                words += f" ({service['condition'].replace('_', ' ')})"
            if words != said:
                tell(f"  {words}")
                said = words
        return service if service["status"] == wanted else None

    return dict(until(look))


def instant(text: str) -> datetime:
    """ISO 8601 as the API writes it."""
    return datetime.fromisoformat(text)


def first_act(owner: Person, finance: Person, slug: str, out: Path) -> dict[str, Any]:
    """From an order to an exact invoice."""
    tell(f"{slug} orders a bare metal server with 8 H200 GPUs")
    order = place(owner, SKU, "train-1")
    when = order["expected_at"] or "unknown until five such servers were made"
    tell(f"{order['number']} is {order['status']}; ready: {when}")
    service = follow(owner, order, "active")
    tell(f"active since {service['ready_at']}: it called home and proved what was bought")
    for item in owner.get(f"/services/{service['id']}/health")["evidence"]:
        tell(f"  proven: {item['item']}: {item['seen']}")
    access = owner.get(f"/services/{service['id']}/access")
    tell(f"reachable as {access['ssh_command']} (the lab's servers are simulated)")
    tell(f"in use for {USE_SECONDS} seconds …")
    time.sleep(USE_SECONDS)
    owner.post(
        f"/services/{service['id']}/terminate",
        {"confirm_name": service["name"], "reason": "the story goes on"},
    )
    tell("terminated: charging has stopped, the server is being cleaned")
    service = follow(owner, order, "terminated")
    tell("cleaned with proof and back in the pool")
    cost = owner.get("/usage")
    tell(
        f"the portal's cost so far: {cost['total']['amount']} {cost['total']['currency']} with tax"
    )
    return bill(owner, finance, order, service, slug, out)


def bill(
    owner: Person,
    finance: Person,
    order: dict[str, Any],
    service: dict[str, Any],
    slug: str,
    out: Path,
) -> dict[str, Any]:
    """The final invoice, issued and downloaded, and the figures of this order's line."""
    tenant = next(
        one for one in finance.get(f"/tenants?slug={slug}")["items"] if one["slug"] == slug
    )
    period = owner.get("/usage")["period"]
    draft = finance.post("/invoices", {"tenant": tenant["id"], "period": period, "final": True})
    issued = finance.post(f"/invoices/{draft['id']}/issue")
    tell(f"finance issued {issued['number']}: {issued['total']['amount']} {issued['currency']}")
    out.mkdir(parents=True, exist_ok=True)
    csv = out / f"{issued['number']}.csv"
    csv.write_bytes(owner.file(f"/invoices/{issued['id']}/csv"))
    lines = owner.get(f"/invoices/{issued['id']}/lines")["items"]
    (line,) = [one for one in lines if one["service_id"] == service["id"]]
    why = owner.get(f"/invoices/{issued['id']}/lines/{line['id']}/explain")
    tell(f"why this amount: {why['arithmetic']}")
    billed = int((instant(service["ended_at"]) - instant(service["ready_at"])).total_seconds())
    return {
        "order": order["number"],
        "service": service["id"],
        "ready_at": service["ready_at"],
        "ended_at": service["ended_at"],
        "billed_seconds": billed,
        "gpu_hours": line["gpu_hours"],
        "amount": issued["subtotal"]["amount"],
        "tax": issued["tax"]["amount"],
        "total": issued["total"]["amount"],
        "currency": issued["currency"],
        "invoice": issued["number"],
        "csv": csv,
    }


def put_back(operator: Person) -> None:
    """An earlier telling of the story left the faulty server in quarantine: an operator puts it
    back.
    """
    for node in operator.get("/nodes?resource_class=gpu.h200.8x.faulty")["items"]:
        if node["status"] == "quarantined":
            operator.post(f"/nodes/{node['id']}/restore", {"reason": "the story is told again"})
            tell(f"an operator puts {node['name']} back into the pool, as if it had been repaired")


def second_act(owner: Person, operator: Person) -> None:
    """A server with seven GPUs is undone and costs nothing."""
    put_back(operator)
    tell("second act: an offering without replacements, on a server whose eighth GPU is missing")
    before = owner.get("/usage")["total"]
    order = place(owner, TRIAL, "trial-1")
    service = follow(owner, order, "failed")
    after = owner.get("/usage")["total"]
    tell(
        f"undone: the service is {service['status']} and never was ready;"
        " its server is in quarantine"
    )
    tell(f"charged for it: nothing ({before['amount']} before, {after['amount']} after)")
    if before != after:
        raise SystemExit("the undone order was charged")


def main() -> None:
    """Tell the story; the RESULT line comes last."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--base-url", required=True)
    parser.add_argument("--out", type=Path, default=ROOT / ".local" / "invoices")
    asked = parser.parse_args()
    slug = story_tenant()
    owner = Person(asked.base_url, f"{slug}.localhost", f"owner@{slug}.localhost")
    finance = Person(asked.base_url, "console.localhost", "finance@console.localhost")
    operator = Person(asked.base_url, "console.localhost", "operator@console.localhost")
    result = first_act(owner, finance, slug, asked.out)
    second_act(owner, operator)
    print("RESULT " + " ".join(f"{key}={value}" for key, value in result.items()), flush=True)


if __name__ == "__main__":
    main()

"""What ./dev check runs: every tool, two at a time, one table at the end."""

from __future__ import annotations

import concurrent.futures
import subprocess
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from lab.install import VENV, python
from lab.instance import ROOT, die

PYTHON = str(python())
TEMPLATES = "templates"


def _tool(name: str, *arguments: str) -> list[str]:
    return [str(VENV / "bin" / name), *arguments]


# The slow ones first, so that the short ones fill the other place.
CHECKS: dict[str, list[str]] = {
    "types": [PYTHON, "-m", "mypy", "--no-error-summary"],
    "templates-format": _tool("djlint", "--check", TEMPLATES),
    "layers": _tool("lint-imports"),
    "templates-lint": _tool("djlint", "--lint", "--quiet", TEMPLATES),
    "deployment": [PYTHON, "manage.py", "check", "--deploy", "--fail-level", "WARNING"],
    "migrations": [PYTHON, "manage.py", "makemigrations", "--check", "--dry-run"],
    "translations": [PYTHON, "manage.py", "check_translations"],
    "states": [PYTHON, "manage.py", "write_states", "--check"],
    "system": [PYTHON, "manage.py", "check"],
    "lint": [PYTHON, "-m", "ruff", "check"],
    "format": [PYTHON, "-m", "ruff", "format", "--check"],
}
SETTINGS = {"deployment": "neocloud.settings.prod"}


@dataclass(frozen=True)
class Outcome:
    """How one check went."""

    name: str
    passed: bool
    seconds: float
    output: str


def run(names: Sequence[str], environment: Mapping[str, str]) -> int:
    """Run the named checks, or all; the code to end with."""
    unknown = [name for name in names if name not in CHECKS]
    if unknown:
        die(f"no check {', '.join(unknown)}; there are: {', '.join(CHECKS)}")
    chosen = [name for name in CHECKS if not names or name in names]
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        outcomes = list(pool.map(lambda name: _run_one(name, environment), chosen))
    for outcome in outcomes:
        if not outcome.passed:
            print(f"── {outcome.name}: {' '.join(CHECKS[outcome.name][1:])}\n{outcome.output}")
    for outcome in outcomes:
        print(
            f"{'passed' if outcome.passed else 'FAILED'}  {outcome.seconds:5.1f} s  {outcome.name}"
        )
    failed = sum(not outcome.passed for outcome in outcomes)
    print(f"{len(outcomes)} checks, {failed} failed")
    return 1 if failed else 0


def _run_one(name: str, environment: Mapping[str, str]) -> Outcome:
    began = time.monotonic()
    own = {**environment}
    if name in SETTINGS:
        own["DJANGO_SETTINGS_MODULE"] = SETTINGS[name]
    done = subprocess.run(
        CHECKS[name],
        cwd=ROOT,
        env=own,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    return Outcome(name, done.returncode == 0, time.monotonic() - began, done.stdout)

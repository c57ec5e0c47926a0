"""The probe a new machine runs, run here against stand-in tools."""

import http.server
import json
import os
import subprocess
import sys
import threading

import pytest

from apps.provisioning.probe import render_probe
from lab.guest_root import Drive, build_root

NODE = {
    "uuid": "6f3b9a52-7c61-5a0e-9d9c-0d6c6f1f8a11",
    "name": "gpu-h200-r01u01",
    "extra": {"gpus": {"model": "NVIDIA H200", "count": 8, "memory_mib": 143771}},
}
DRIVE = Drive(
    meta_data={"hostname": "trainer-1", "public_keys": {"laptop": "ssh-ed25519 AAAAC3 laptop"}},
    network_data={
        "links": [{"id": "eth0", "ethernet_mac_address": "02:67:70:00:00:00"}],
        "networks": [{"link": "eth0", "ip_address": "10.20.0.11", "netmask": "255.255.255.0"}],
    },
)


class Site(http.server.ThreadingHTTPServer):
    """Where machines call home: answers with the given codes, then 200."""

    def __init__(self, *codes):
        self.codes = list(codes)
        self.calls = []
        super().__init__(("127.0.0.1", 0), Answer)
        self.url = f"http://127.0.0.1:{self.server_port}/call-home/run-1"


class Answer(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.server.calls.append((self.path, self.headers["Authorization"], json.loads(body)))
        self.send_response(self.server.codes.pop(0) if self.server.codes else 200)
        self.end_headers()

    def log_message(self, *args):
        pass


@pytest.fixture
def site():
    started = []

    def start(*codes):
        server = Site(*codes)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        started.append(server)
        return server

    yield start
    for server in started:
        server.shutdown()
        server.server_close()


def boot(tmp_path, site, *, behaviour="healthy", without=None):
    """Run the user data on a machine that cloud-init has just set up."""
    root = build_root(tmp_path / "machine", NODE, DRIVE, behaviour)
    if without:
        (root / "usr" / "bin" / without).unlink()
    script = root / "user-data"
    text = render_probe(call_home_url=site.url, token="one-time-token")
    script.write_text(text.replace("FIRST_WAIT_SECONDS = 1.0", "FIRST_WAIT_SECONDS = 0.0"))
    return subprocess.run(
        [sys.executable, script],
        env={"PATH": f"{root / 'usr/bin'}:{os.defpath}", "NEO_ROOT": str(root)},
        capture_output=True,
        text=True,
        timeout=30,
    )


def test_a_healthy_machine_reports_what_was_bought(tmp_path, site):
    home = site()

    done = boot(tmp_path, home)

    path, authorization, report = home.calls[0]
    assert done.returncode == 0
    assert path == "/call-home/run-1"
    assert authorization == "Bearer one-time-token"
    assert report["hostname"] == "trainer-1"
    assert [gpu["name"] for gpu in report["gpus"]] == ["NVIDIA H200"] * 8
    assert len({gpu["uuid"] for gpu in report["gpus"]}) == 8
    assert (report["driver"], report["cuda"]) == ("580.95.05", "13.0")
    assert report["authorized_keys"] == ["ssh-ed25519 AAAAC3 laptop"]
    assert report["addresses"] == ["10.20.0.11/24"]
    assert report["ssh_host_keys"][0].startswith("ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAI")
    assert {mount["target"] for mount in report["mounts"]} == {"/", "/boot/efi", "/data"}
    assert sum(disk["size_bytes"] for disk in report["disks"]) > 30_000_000_000_000
    assert report["gpu_health"] == [
        {"index": index, "ecc_uncorrected": 0, "needs_remapping": False} for index in range(8)
    ]
    assert report["xid_errors"] == []
    assert report["hardware"]["server"] == "Lab GPU server"
    assert report["hardware"]["gpu_firmware"] == "96.00.CF.00.01"
    assert report["errors"] == []


def test_what_the_driver_complained_of_is_reported(tmp_path, site):
    home = site()

    boot(tmp_path, home, behaviour="xid")

    assert "79, GPU has fallen off the bus" in home.calls[0][2]["xid_errors"][0]


def test_memory_errors_are_reported(tmp_path, site):
    home = site()

    boot(tmp_path, home, behaviour="ecc")

    assert home.calls[0][2]["gpu_health"][0]["ecc_uncorrected"] == 3


def test_the_token_shows_in_no_output(tmp_path, site):
    done = boot(tmp_path, site(503, 401))

    assert "one-time-token" not in done.stdout + done.stderr


def test_it_calls_again_until_it_is_answered(tmp_path, site):
    home = site(503, 429)

    done = boot(tmp_path, home)

    assert done.returncode == 0
    assert len(home.calls) == 3


def test_a_refusal_is_final(tmp_path, site):
    home = site(403)

    done = boot(tmp_path, home)

    assert done.returncode == 1
    assert len(home.calls) == 1


def test_a_missing_gpu_is_reported_missing(tmp_path, site):
    home = site()

    boot(tmp_path, home, behaviour="gpus=7")

    assert len(home.calls[0][2]["gpus"]) == 7


def test_a_wrong_key_is_reported_wrong(tmp_path, site):
    home = site()

    boot(tmp_path, home, behaviour="wrong-key")

    assert home.calls[0][2]["authorized_keys"][0].endswith("another-machine")


def test_a_driver_that_does_not_load_is_a_finding_not_a_crash(tmp_path, site):
    home = site()

    done = boot(tmp_path, home, behaviour="no-driver")

    report = home.calls[0][2]
    assert done.returncode == 0
    assert (report["gpus"], report["driver"], report["cuda"]) == (None, None, None)
    assert any("couldn't communicate with the NVIDIA driver" in text for text in report["errors"])


def test_a_missing_tool_leaves_the_rest_of_the_report(tmp_path, site):
    home = site()

    boot(tmp_path, home, without="nvidia-smi")

    report = home.calls[0][2]
    assert report["gpus"] is None
    assert report["addresses"] == ["10.20.0.11/24"]
    assert any(text.startswith("gpus: ") for text in report["errors"])


def test_an_address_no_machine_can_call_is_refused_at_once():
    with pytest.raises(ValueError, match="call_home_url"):
        render_probe(call_home_url="ftp://site/run-1", token="x")


def test_no_token_can_break_out_of_the_script():
    text = render_probe(call_home_url="http://site/run-1", token='"\nraise SystemExit("')

    assert "TOKEN = '\"\\nraise SystemExit(\"'" in text
    compile(text, "user-data", "exec")

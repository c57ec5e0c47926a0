"""`python -m tests.faultproxy --target URL [--port N] [--rules FILE]`: beside other processes."""

import argparse
import json
import signal
from pathlib import Path
from threading import Event

from tests.faultproxy.proxy import CONTROL, FaultProxy
from tests.faultproxy.rules import parse


def main() -> None:
    """Serve until SIGTERM or SIGINT; the file holds a list of rules."""
    asked = argparse.ArgumentParser(description=__doc__)
    asked.add_argument("--target", required=True)
    asked.add_argument("--port", type=int, default=0)
    asked.add_argument("--rules", type=Path)
    words = asked.parse_args()
    ended = Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_given: ended.set())
    with FaultProxy(words.target, port=words.port) as proxy:
        if words.rules:
            proxy.add(*(parse(one) for one in json.loads(words.rules.read_text())))
        print(f"{proxy.url} before {words.target}; rules at {CONTROL}", flush=True)
        ended.wait()


if __name__ == "__main__":
    main()

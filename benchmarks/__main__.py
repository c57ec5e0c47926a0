"""Runs the benchmarks named, else all, one after another; the code is that of the worst."""

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]

codes = []
for name in sys.argv[1:]:
    print(f"── {name}", flush=True)
    words = [sys.executable, "-m", f"benchmarks.{name}"]
    codes.append(subprocess.run(words, cwd=ROOT, check=False).returncode)
raise SystemExit(max(codes, default=0))

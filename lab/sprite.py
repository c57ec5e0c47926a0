"""Make static/sprite.svg again from the icons named in static/sprite.txt.

python -m lab.sprite FOLDER     FOLDER: node_modules/@tabler/icons after `npm install @tabler/icons`
"""

import re
import sys
from pathlib import Path

STATIC = Path(__file__).resolve().parents[1] / "static"
INSIDE = re.compile(r"<svg[^>]*>(.*)</svg>", re.DOTALL)


def symbol(name: str, source: Path) -> str:
    """One icon as a symbol; it takes colour and size from where it is used."""
    found = INSIDE.search(source.read_text())
    if found is None:
        raise SystemExit(f"sprite: {source} is not an icon")
    inside = re.sub(r"\s*\n\s*", "", found.group(1))
    return (
        f'<symbol id="{name}" viewBox="0 0 24 24" fill="none" stroke="currentColor"'
        f' stroke-width="1.75" stroke-linecap="round" stroke-linejoin="round">{inside}</symbol>'
    )


def main(folder: str) -> None:
    """Write the sprite and the notice of the icons' licence beside it."""
    package = Path(folder)
    names = (STATIC / "sprite.txt").read_text().split()
    symbols = [symbol(name, package / "icons" / "outline" / f"{name}.svg") for name in names]
    (STATIC / "sprite.svg").write_text(
        '<svg xmlns="http://www.w3.org/2000/svg">\n' + "\n".join(symbols) + "\n</svg>\n"
    )
    (STATIC / "sprite.LICENSE").write_text((package / "LICENSE").read_text())
    print(f"{len(names)} icons")


if __name__ == "__main__":
    main(*sys.argv[1:])

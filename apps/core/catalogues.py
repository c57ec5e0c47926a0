"""Translation catalogues by the standard library alone: find texts, read and write .po, write .mo.

GNU gettext need not be installed. English is the source; every other language has a `.po`.
"""

import ast
import re
import struct
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from django.utils.translation.template import templatize

# function name → places of (context, singular, plural) among its arguments
_CALLS: dict[str, tuple[int | None, int, int | None]] = {
    **dict.fromkeys(("_", "gettext", "gettext_lazy", "gettext_noop"), (None, 0, None)),
    **dict.fromkeys(("ngettext", "ngettext_lazy"), (None, 0, 1)),
    **dict.fromkeys(("pgettext", "pgettext_lazy"), (0, 1, None)),
    **dict.fromkeys(("npgettext", "npgettext_lazy"), (0, 1, 2)),
}
_STRING = r"""u?(?:'(?:\\.|[^'\\])*'|"(?:\\.|[^"\\])*")"""
_IN_TEMPLATE = re.compile(
    rf"\b(gettext|ngettext|pgettext|npgettext|_)\(\s*({_STRING}(?:\s*,\s*{_STRING})*)", re.DOTALL
)
_PLACEHOLDER = re.compile(r"%\(\w+\)[a-z]|\{\w*[^{}]*\}")
_PO_LINE = re.compile(r'^(msgctxt|msgid|msgid_plural|msgstr(?:\[\d+\])?)?\s*("(?:\\.|[^"\\])*")$')
_PO_ESCAPES = {"\\": "\\\\", '"': '\\"', "\n": "\\n", "\t": "\\t", "\r": "\\r"}

Key = tuple[str, str]  # context and singular
_HEAD: Key = ("", "")
_TWO_FORMS = "nplurals=2; plural=(n != 1);"
_PLURALS = dict.fromkeys(("ko", "ja", "zh", "vi", "th"), "nplurals=1; plural=0;")


@dataclass
class Message:
    """One text: in the source (no translations yet) or in a catalogue."""

    singular: str
    plural: str = ""
    context: str = ""
    translations: list[str] = field(default_factory=list)
    is_fuzzy: bool = False
    places: set[str] = field(default_factory=set)

    @property
    def key(self) -> Key:
        """What tells it from other texts."""
        return self.context, self.singular

    @property
    def is_translated(self) -> bool:
        """Every form has words a person confirmed."""
        return bool(self.translations) and all(self.translations) and not self.is_fuzzy


def find_messages(root: Path) -> dict[Key, Message]:
    """Every text marked for translation under `apps`, `neocloud` and `templates` of `root`."""
    found: dict[Key, Message] = {}
    for path, read in _sources(root):
        place = path.relative_to(root).as_posix()
        for message in read(path.read_text(encoding="utf-8")):
            known = found.setdefault(message.key, message)
            known.plural = known.plural or message.plural
            known.places.add(place)
    return found


def _sources(root: Path) -> Iterator[tuple[Path, Callable[[str], Iterator[Message]]]]:
    for folder in ("apps", "neocloud"):
        for path in sorted((root / folder).rglob("*.py")):
            if "migrations" not in path.parts:
                yield path, messages_of_python
    for suffix in ("html", "txt"):
        for path in sorted((root / "templates").rglob(f"*.{suffix}")):
            yield path, messages_of_template


def messages_of_python(source: str) -> Iterator[Message]:
    """Texts given literally to a gettext function; computed ones were marked where they stand."""
    for node in ast.walk(ast.parse(source)):
        if not isinstance(node, ast.Call):
            continue
        name = getattr(node.func, "id", None) or getattr(node.func, "attr", None)
        if name in _CALLS:
            words = [
                one.value if isinstance(one, ast.Constant) and isinstance(one.value, str) else None
                for one in node.args
            ]
            message = _message(name, words)
            if message is not None:
                yield message


def messages_of_template(source: str) -> Iterator[Message]:
    """Texts of `translate` and `blocktranslate` tags and of `_("…")` in expressions."""
    for name, literals in _IN_TEMPLATE.findall(templatize(source)):
        words = [ast.literal_eval(one) for one in re.findall(_STRING, literals, re.DOTALL)]
        message = _message(name, words)
        if message is not None:
            yield message


def _message(name: str, words: list[str | None]) -> Message | None:
    context, singular, plural = (
        words[place] if place is not None and place < len(words) else None for place in _CALLS[name]
    )
    if not singular:
        return None
    return Message(singular=singular, plural=plural or "", context=context or "")


def read_po(path: Path) -> dict[Key, Message]:
    """The texts of a catalogue, its head under ("", ""). Raises ValueError at a broken line."""
    entries: dict[Key, Message] = {}
    for number, block in _blocks(path):
        parts: dict[str, str] = {}
        at = ""
        for line in block:
            match = _PO_LINE.match(line)
            if match is None:
                if line.startswith("#"):
                    continue
                raise ValueError(f"{path}: line near {number}: {line!r} is not of a catalogue")
            at = match[1] or at
            parts[at] = parts.get(at, "") + _unquoted(match[2])
        if "msgid" in parts:
            message = Message(
                singular=parts["msgid"],
                plural=parts.get("msgid_plural", ""),
                context=parts.get("msgctxt", ""),
                translations=[text for name, text in parts.items() if name.startswith("msgstr")],
                is_fuzzy=any(line.startswith("#,") and "fuzzy" in line for line in block),
                places={line[3:].strip() for line in block if line.startswith("#: ")},
            )
            entries[message.key] = message
    return entries


def _blocks(path: Path) -> Iterator[tuple[int, list[str]]]:
    block: list[str] = []
    for number, line in enumerate([*path.read_text(encoding="utf-8").splitlines(), ""], 1):
        if line.strip():
            block.append(line.strip())
        elif block:
            yield number, block
            block = []


def write_po(path: Path, entries: dict[Key, Message]) -> None:
    """The catalogue, in the order of context and text, so that changes are easy to read."""
    blocks = []
    for _key, message in sorted(entries.items()):
        lines = [f"#: {place}" for place in sorted(message.places)]
        lines += ["#, fuzzy"] if message.is_fuzzy else []
        lines += [f"msgctxt {_quoted(message.context)}"] if message.context else []
        lines.append(f"msgid {_quoted(message.singular)}")
        if message.plural:
            lines.append(f"msgid_plural {_quoted(message.plural)}")
            texts = message.translations or [""]
            lines += [f"msgstr[{place}] {_quoted(text)}" for place, text in enumerate(texts)]
        else:
            lines.append(f"msgstr {_quoted(''.join(message.translations[:1]))}")
        blocks.append("\n".join(lines))
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("\n\n".join(blocks) + "\n", encoding="utf-8")


def _quoted(text: str) -> str:
    escaped = "".join(_PO_ESCAPES.get(character, character) for character in text)
    if "\\n" not in escaped.removesuffix("\\n"):
        return f'"{escaped}"'
    lines = escaped.replace("\\n", "\\n\0").rstrip("\0").split("\0")
    return "\n".join(['""', *(f'"{line}"' for line in lines)])


def _unquoted(literal: str) -> str:
    known = {escape: character for character, escape in _PO_ESCAPES.items()}
    return re.sub(r"\\.", lambda match: known.get(match[0], match[0][1:]), literal[1:-1])


def write_mo(path: Path, entries: dict[Key, Message]) -> None:
    """What programs read: the confirmed translations, in the form `gettext` of Python loads."""
    pairs = []
    for message in entries.values():
        if message.is_translated:
            name = f"{message.context}\4{message.singular}" if message.context else message.singular
            name += f"\0{message.plural}" if message.plural else ""
            pairs.append((name.encode(), "\0".join(message.translations).encode()))
    pairs.sort()
    keys = b"".join(name + b"\0" for name, _text in pairs)
    start = 28 + 16 * len(pairs)
    tables: list[list[int]] = [[], []]
    at = [start, start + len(keys)]
    for pair in pairs:
        for side in (0, 1):
            tables[side] += [len(pair[side]), at[side]]
            at[side] += len(pair[side]) + 1
    numbers = [0x950412DE, 0, len(pairs), 28, 28 + 8 * len(pairs), 0, start, *tables[0], *tables[1]]
    texts = b"".join(text + b"\0" for _name, text in pairs)
    path.write_bytes(struct.pack(f"<{len(numbers)}I", *numbers) + keys + texts)


def problems(wanted: dict[Key, Message], have: dict[Key, Message]) -> list[str]:
    """What is wrong, a line each: missing, unconfirmed, other placeholders, no longer used."""
    found = []
    for key, message in sorted(wanted.items()):
        entry = have.get(key)
        where = ", ".join(sorted(message.places))
        if entry is None:
            found.append(f"missing: {message.singular!r} ({where})")
        elif not entry.is_translated:
            state = "fuzzy" if entry.is_fuzzy else "empty"
            found.append(f"{state}: {message.singular!r} ({where})")
        elif message.plural != entry.plural:
            found.append(f"plural differs: {message.singular!r} ({where})")
        else:
            found += _placeholder_problems(message, entry)
    for key in sorted(set(have) - set(wanted) - {_HEAD}):
        found.append(f"no longer used: {key[1]!r}")
    return found


def _head(language: str) -> str:
    return (
        f"Language: {language}\nMIME-Version: 1.0\nContent-Type: text/plain; charset=UTF-8\n"
        f"Content-Transfer-Encoding: 8bit\nPlural-Forms: {_PLURALS.get(language, _TWO_FORMS)}\n"
    )


def _placeholder_problems(message: Message, entry: Message) -> list[str]:
    needed = set(_PLACEHOLDER.findall(message.plural or message.singular))
    allowed = needed | set(_PLACEHOLDER.findall(message.singular))
    return [
        f"placeholders differ: {message.singular!r} → {text!r}"
        for text in entry.translations
        if not needed <= set(_PLACEHOLDER.findall(text)) <= allowed
    ]


def merged(
    wanted: dict[Key, Message], have: dict[Key, Message], *, language: str
) -> dict[Key, Message]:
    """The catalogue with what is new (empty) and without what is no longer used."""
    result = {_HEAD: have.get(_HEAD) or Message("", translations=[_head(language)])}
    for key, message in wanted.items():
        entry = have.get(key)
        known = entry.translations if entry is not None and entry.plural == message.plural else []
        result[key] = Message(
            singular=message.singular,
            plural=message.plural,
            context=message.context,
            translations=known,
            is_fuzzy=entry.is_fuzzy if entry is not None else False,
            places=message.places,
        )
    return result

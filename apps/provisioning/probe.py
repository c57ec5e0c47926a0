"""The user data of a new machine: the probe script, the place to call and its one-time token."""

from pathlib import Path

SCRIPT = Path(__file__).with_name("guest_probe.py")


def render_probe(*, call_home_url: str, token: str, login: str = "ubuntu") -> str:
    """The script a machine runs at its first boot to report what it is.

    `call_home_url` is the full URL with the run's id; `login` is whose keys it reports; `token`
    stands only inside the script, so it shows neither in the machine's process list nor in its
    log. Raises ValueError for a URL that is not http(s), which would only fail on the machine,
    half an hour later.
    """
    if not call_home_url.startswith(("http://", "https://")):
        raise ValueError(f"call_home_url: want http:// or https://, got {call_home_url!r}")
    text = SCRIPT.read_text(encoding="utf-8")
    for name, value in (
        ("CALL_HOME_URL", call_home_url),
        ("TOKEN", token),
        ("LOGIN", login),
    ):
        placeholder = f'\n{name} = ""'
        if text.count(placeholder) != 1:
            raise ValueError(f'{SCRIPT.name}: want exactly one line {name} = ""')
        text = text.replace(placeholder, f"\n{name} = {value!r}")
    return text

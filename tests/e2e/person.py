"""Somebody with a browser, who notices what people notice: errors, refusals, pages too wide."""

import re

from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import (
    Browser,
    ConsoleMessage,
    Locator,
    Page,
    Response,
    ViewportSize,
    expect,
)

from tests.people import PASSWORD

WIDE: ViewportSize = {"width": 1400, "height": 900}
NARROW: ViewportSize = {"width": 400, "height": 900}
BAD = ("serious", "critical")
SEEN = 15_000  # milliseconds a page may take to answer
LIVE = 60_000  # milliseconds a page may take to show, by itself, what has happened


class Person:
    """A person of one side of the product; `page` is Playwright's."""

    def __init__(self, browser: Browser, base: str, email: str) -> None:
        self.base, self._email = base, email
        self._context = browser.new_context(
            viewport=WIDE, accept_downloads=True, locale="en-GB", reduced_motion="reduce"
        )
        self._context.add_cookies([{"name": "neo_language", "value": "en", "url": base}])
        self._context.set_default_timeout(SEEN)
        self.page: Page = self._context.new_page()
        self.troubles: list[str] = []
        self.page.on("console", self._hear)
        self.page.on("pageerror", lambda error: self.troubles.append(str(error)))
        self.page.on("response", self._read)

    def _hear(self, message: ConsoleMessage) -> None:
        if message.type == "error":  # what the security policy refuses is told as one too
            self.troubles.append(f"{self.page.url}: {message.text}")

    def _read(self, answer: Response) -> None:
        if answer.status >= 400:
            self.troubles.append(f"{answer.request.method} {answer.url}: {answer.status}")

    @property
    def main(self) -> Locator:
        """What the page says, without the frame around it."""
        return self.page.locator("main")

    def sign_in(self) -> None:
        """Come to the door and in."""
        self.go("/")
        self.look()
        self.page.get_by_label("Email").fill(self._email)
        self.page.get_by_label("Password").first.fill(PASSWORD)
        self.press("Sign in")
        expect(self.page.get_by_role("navigation").first).to_be_visible()

    def go(self, path: str) -> None:
        """Open a page of the host."""
        self.page.goto(self.base + path)
        self.fits()

    def follow(self, link: str | re.Pattern[str]) -> None:
        """Follow the first link of that name on the page."""
        self.main.get_by_role("link", name=link).first.click()

    def press(self, button: str) -> None:
        """Press the button of that name."""
        self.page.get_by_role("button", name=button, exact=True).first.click()

    def dialog(self) -> Locator:
        """The question the page asks before it does something."""
        return self.page.locator("dialog[open]")

    def reads(self, *words: str | re.Pattern[str], within: float = SEEN) -> None:
        """The page says this, now or in a moment."""
        for word in words:
            expect(self.main).to_contain_text(word, timeout=within)

    def heading(self, words: str | re.Pattern[str]) -> None:
        """The page of that heading has come; it fits."""
        expect(self.page.get_by_role("heading", level=1)).to_contain_text(words)
        self.fits()

    def fits(self) -> None:
        """No page is wider than the screen, wide or narrow."""
        for size in (NARROW, WIDE):
            self.page.set_viewport_size(size)
            over = self.page.evaluate(
                "document.documentElement.scrollWidth - document.documentElement.clientWidth"
            )
            assert over <= 0, f"{self.page.url} is {over} px too wide for {size['width']} px"

    def look(self) -> None:
        """The page fits, and everybody can read it, light and dark."""
        for theme in ("dark", "light"):
            self.page.evaluate("theme => document.documentElement.dataset.bsTheme = theme", theme)
            wrong = [
                f"{one['id']}: {one['nodes'][0]['html'][:120]}"
                for one in Axe().run(self.page).response["violations"]
                if one["impact"] in BAD
            ]
            assert not wrong, f"{self.page.url} {theme}: {wrong}"
        self.fits()

    def stays(self) -> None:
        """Mark the page that is open; `has_stayed` tells whether it was loaded again."""
        self.page.evaluate("window.wasHere = true")

    def has_stayed(self) -> None:
        """The page changed by itself: nobody loaded it again."""
        assert self.page.evaluate("window.wasHere") is True

    def leave(self) -> None:
        """Close the browser."""
        self._context.close()

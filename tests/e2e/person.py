"""Somebody with a browser, who notices what people notice: errors, refusals, pages too wide."""

from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, ConsoleMessage, Page, expect

from tests.people import PASSWORD

WIDE, NARROW = {"width": 1400, "height": 900}, {"width": 400, "height": 900}
BAD = ("serious", "critical")


class Person:
    """A person signed in on a host; `page` is Playwright's."""

    def __init__(self, browser: Browser, host: str, port: int, email: str) -> None:
        self.base = f"http://{host}.localhost:{port}"
        self._context = browser.new_context(
            viewport=WIDE, accept_downloads=True, locale="en-GB", reduced_motion="reduce"
        )
        self._context.add_cookies([{"name": "neo_language", "value": "en", "url": self.base}])
        self.page: Page = self._context.new_page()
        self.page.set_default_timeout(15_000)
        self.troubles: list[str] = []
        self.page.on("console", self._note)
        self.page.on("pageerror", lambda error: self.troubles.append(str(error)))
        self.go("/")
        self.look()
        self.page.get_by_label("Email").fill(email)
        self.page.get_by_label("Password", exact=False).first.fill(PASSWORD)
        self.page.get_by_role("button", name="Sign in").click()
        expect(self.page.locator("nav").first).to_be_visible()

    def _note(self, message: ConsoleMessage) -> None:
        if message.type == "error":
            self.troubles.append(f"{self.page.url}: {message.text}")

    def go(self, path: str) -> None:
        """Open a page of the host."""
        answer = self.page.goto(self.base + path)
        assert answer is not None
        assert answer.status == 200, f"{path}: {answer.status}"

    def look(self) -> None:
        """The page fits wide and narrow screens, and reads well, light and dark."""
        for theme in ("light", "dark"):
            self.page.evaluate("theme => document.documentElement.dataset.bsTheme = theme", theme)
            found = Axe().run(self.page).response["violations"]
            wrong = [
                f"{one['id']}: {one['nodes'][0]['html'][:120]}"
                for one in found
                if one["impact"] in BAD
            ]
            assert not wrong, f"{self.page.url} {theme}: {wrong}"
        for size in (NARROW, WIDE):
            self.page.set_viewport_size(size)  # type: ignore[arg-type]
            over = self.page.evaluate(
                "document.documentElement.scrollWidth - document.documentElement.clientWidth"
            )
            assert over <= 0, f"{self.page.url} is {over} px too wide for {size['width']} px"

    def leave(self) -> None:
        """Close the browser."""
        self._context.close()

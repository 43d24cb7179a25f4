"""A page of which every complaint and every request is noted."""

from typing import Any


class Watched:
    """A page of which every complaint and every request is noted."""

    def __init__(self, page: Any) -> None:
        self.page = page
        self.said: list[str] = []
        self.asked: list[str] = []
        page.on("console", lambda message: self.said.append(message.text))
        page.on("pageerror", lambda error: self.said.append(str(error)))
        page.on("dialog", lambda dialog: (self.said.append(dialog.message), dialog.dismiss()))
        page.on("request", lambda request: self.asked.append(request.url))

    def text(self, where: str) -> str:
        found: str = self.page.inner_text(where)
        return found

    def names(self) -> list[str]:
        found: list[str] = self.page.locator("#graphs tbody td.name").all_inner_texts()
        return found

    def value(self, script: str) -> Any:
        return self.page.evaluate(script)

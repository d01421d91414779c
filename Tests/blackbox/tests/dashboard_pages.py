"""The dashboard in Chromium: what people see, on a desk and on a phone, in light and dark, with and without scripts."""

import re
import unittest

from support import browser
from support.browser import SCHEMES, WIDTHS, Browser
from support.case import Case
from support.deadline import wait_until
from support.product import ADA, new_user, seed, token


def number(text):
    return int(re.sub(r"[^0-9]", "", text))


@unittest.skipIf(browser.missing(), f"not installed: {browser.missing()}")
class PagesCase(Case):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.number, cls.token = token(cls, "ann", "operator")
        cls.wait_for_tokens()
        cls.browser = Browser(cls.service)

    @classmethod
    def tearDownClass(cls):
        cls.browser.close()
        super().tearDownClass()

    @classmethod
    def wait_for_tokens(cls):
        wait_until(lambda: cls.service.ask("PING").startswith("-NOAUTH"), 5, "a token is required")

    def tearDown(self):
        self.assertEqual(self.browser.complaints(), [], "the browser's console")


class Pages(PagesCase):
    FLAGS = ()

    @classmethod
    def setUpClass(cls):
        Case.setUpClass.__func__(cls)
        seed(cls)
        cls.number, cls.token = token(cls, "ann", "operator")
        cls.wait_for_tokens()
        cls.browser = Browser(cls.service)
        cls.browser.sign_in(cls.token)
        assert cls.browser.text("h1") == "Overview", cls.browser.text("body")

    def test_every_page_has_no_violation_of_axe_and_no_sideways_scrolling(self):
        stranger = new_user()
        pages = {
            "overview": ("/dashboard", "Overview"),
            "user": (f"/dashboard/users/{ADA}", f"User {ADA}"),
            "find": ("/dashboard/users", "Find a user"),
            "mistake": ("/dashboard/users?user=ada", "Find a user"),
            "stranger": (f"/dashboard/users/{stranger}", f"User {stranger}"),
            "trial": ("/dashboard?period=trial", "Overview"),
            "empty": ("/dashboard?period=1999-12", "Overview"),
            "missing": ("/dashboard/nowhere", "There is no such page"),
        }
        for name, (path, heading) in pages.items():
            for width in WIDTHS:
                for scheme in SCHEMES:
                    with self.subTest(page=name, width=width, scheme=scheme):
                        self.browser.look(width, scheme)
                        self.browser.open(path)
                        self.assertEqual(self.browser.text("h1"), heading)
                        self.browser.picture(name)
                        self.assertEqual(self.browser.overflow(), 0)
                        self.assertEqual(self.browser.axe(), [])
        self.browser.complaints()

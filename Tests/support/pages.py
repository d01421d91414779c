"""An HTTP client of the dashboard: keeps cookies, sends forms, and follows no redirects."""

import html
import http.client
import re
from urllib.parse import urlencode

from .http import Answer
from .waiting import TIMEOUT_SECONDS, wait_until


class DashboardClient:
    """One browser's session. `host` is the Host header."""

    def __init__(self, service, host=None):
        self.service = service
        self.host = host or f"127.0.0.1:{service.http_port}"
        self.cookies = {}

    def request(self, method, path, body=None, headers=None, timeout=TIMEOUT_SECONDS):
        headers = {"Host": self.host, **(headers or {})}
        if self.cookies and "Cookie" not in headers:
            headers["Cookie"] = "; ".join(f"{name}={value}" for name, value in self.cookies.items())
        if self.service.tls is None:
            connection = http.client.HTTPConnection("127.0.0.1", self.service.http_port, timeout=timeout)
        else:
            connection = http.client.HTTPSConnection("localhost", self.service.http_port, timeout=timeout, context=self.service.tls)
        try:
            connection.request(method, path, body, headers)
            response = connection.getresponse()
            answer = Answer(status=response.status, headers=response.headers, body=response.read())
        finally:
            connection.close()
        for cookie in answer.headers.get_all("Set-Cookie") or []:
            name, value = cookie.split(";")[0].split("=", 1)
            self.cookies.pop(name, None)
            if value:
                self.cookies[name] = value
        return answer

    def get(self, path="/dashboard", **headers):
        return self.request("GET", path, headers=headers)

    def get_loaded(self, path="/dashboard"):
        """The page once all of its figures are there. A busy database may take longer than a page waits for them."""

        def loaded():
            answer = self.get(path)
            return None if "Still counting" in answer.text else answer

        return wait_until(loaded, f"the figures of {path}")

    def send(self, path, fields, **headers):
        """Sends a form as a browser does."""
        headers = {
            "Content-Type": "application/x-www-form-urlencoded", "Origin": f"http://{self.host}", "Sec-Fetch-Site": "same-origin",
            **headers,
        }  # fmt: skip
        return self.request("POST", path, urlencode(fields), {name: value for name, value in headers.items() if value is not None})

    def csrf_token(self, path="/dashboard/sign-in"):
        """The CSRF token in the forms of a page."""
        return hidden_fields(self.get(path))["csrf"]

    def sign_in(self, token, to=None):
        fields = {"csrf": self.csrf_token(), "token": token}
        return self.send("/dashboard/sign-in", {**fields, "to": to} if to else fields)


def hidden_fields(answer):
    """The hidden fields of a page's last form, and those that are in all of its forms."""
    return {
        html.unescape(name): html.unescape(value)
        for name, value in re.findall(r'<input type="hidden" name="([^"]*)" value="([^"]*)">', answer.text)
    }


def visible_text(answer):
    """The visible text, without markup."""
    text = re.sub(r"<(title|desc|script|style)\b.*?</\1>", " ", answer.text, flags=re.S)
    return re.sub(r"\s+", " ", html.unescape(re.sub(r"<[^>]*>", " ", text))).strip()

"""integrations/open-webui against the source of the installed Open WebUI: the page closes each route that asks a model uncounted."""

import re
import unittest
from fnmatch import fnmatchcase

from support.installed_routes import routes
from support.open_webui_server import PROGRAM
from support.printed import blocks

COUNTED = {"/api/chat/completions", "/api/v1/chat/completions"}
ASKS_NO_MODEL = {
    # What administrators do with models.
    "/openai/config/update", "/openai/verify", "/openai/models/x", "/openai/models/x/download", "/openai/models/x/load",
    "/openai/models/x/unload", "/ollama/config/update", "/ollama/verify", "/ollama/api/unload", "/ollama/api/pull",
    "/ollama/api/pull/x", "/ollama/api/push", "/ollama/api/push/x", "/ollama/api/create", "/ollama/api/create/x", "/ollama/api/copy",
    "/ollama/api/copy/x", "/ollama/api/delete", "/ollama/api/delete/x", "/ollama/api/show", "/ollama/models/download",
    "/ollama/models/download/x", "/ollama/models/upload", "/ollama/models/upload/x", "/api/models/unload",
    "/api/v1/tasks/config/update", "/api/v1/audio/config/update",
    # Speech and embeddings are no messages.
    "/api/v1/audio/speech", "/api/v1/audio/transcriptions", "/api/embeddings", "/api/v1/embeddings", "/api/message/count_tokens",
    "/api/v1/messages/count_tokens",
    # About chats and tasks that there are; the answer to a question of a tool goes on through the filter.
    "/api/v1/chats/x/messages/x/resolve", "/api/chat/completed", "/api/chat/actions/x", "/api/tasks/stop/x", "/api/tasks/chat/x/stop",
    "/api/events/webhooks", "/api/events/webhooks/x", "/oauth/backchannel-logout",
}  # fmt: skip
THROUGH_THE_FILTER = {"channels"}
"""Routers whose functions ask models as chats do."""
ASKS = {"generate_chat_completion", "generate_openai_chat_completion", "generate_ollama_chat_completion", "CHAT_COMPLETION_HANDLER"}


class Routes(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        (folder,) = PROGRAM.parents[1].glob("lib/python3.*/site-packages/open_webui")
        cls.main = folder / "main.py"
        prefixes = re.findall(r"include_router\((\w+)\.router, prefix='([^']*)'", cls.main.read_text())
        cls.routers = {}
        for name, prefix in prefixes:
            files = [folder / "routers" / f"{name}.py", *(folder / "routers" / name).glob("*.py")]
            cls.routers[name] = [route for file in files if file.exists() for route in routes(file, prefix)]
        cls.routers["main"] = list(routes(cls.main))
        text = {each.language: each.text for each in blocks("integrations/open-webui/README.md")}
        nginx = [re.compile(each) for each in re.findall(r"location ~ (\S+)", text["nginx"])]
        paths = {word: re.findall(rf"^ +{word} (.*)$", text["caddy"], re.M) for word in ("path", "not path")}
        closed, kept = (" ".join(paths[word]).split() for word in ("path", "not path"))
        cls.closed_by = {
            "nginx": lambda path: any(each.search(path) for each in nginx),
            "Caddy": lambda path: any(fnmatchcase(path, each) for each in closed) and not any(fnmatchcase(path, each) for each in kept),
        }

    def test_each_route_that_may_ask_a_model_is_closed_or_known(self):
        found = [
            route.path for name in ("main", "openai", "ollama", "tasks", "audio") for route in self.routers[name]
            if route.method not in ("get", "head")
        ]  # fmt: skip
        self.assertGreater(len(found), 60)
        self.assertEqual(sorted((COUNTED | ASKS_NO_MODEL).difference(found)), [], "routes that Open WebUI does not have")
        for server, is_closed in self.closed_by.items():
            past = {path for path in found if not is_closed(path)}
            self.assertEqual(sorted(past - COUNTED - ASKS_NO_MODEL), [], f"{server} must close these, or they ask no model")
            self.assertEqual(sorted((COUNTED | ASKS_NO_MODEL) - past), [], f"{server} must keep these open")

    def test_no_other_router_asks_models(self):
        asking = {
            name for name, found in self.routers.items() if any(route.calls & ASKS for route in found)
        } - {"main", "openai", "ollama", "tasks"}  # fmt: skip
        self.assertEqual(asking, THROUGH_THE_FILTER)

    def test_what_the_pages_read_stays_open(self):
        for path in ("/openai/models", "/openai/config", "/ollama/api/version", "/ollama/api/tags", "/api/v1/tasks/config", "/"):
            for server, is_closed in self.closed_by.items():
                self.assertFalse(is_closed(path), (server, path))


def load_tests(loader, tests, pattern):
    """Only where Open WebUI is installed: by script/integrations."""
    return tests if PROGRAM.exists() else unittest.TestSuite()

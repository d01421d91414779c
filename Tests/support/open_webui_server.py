"""A running Open WebUI with the filter of integrations/open-webui, in an environment of its own, .build/open-webui."""

import uuid
from pathlib import Path

import httpx

from . import processes
from .service import environment
from .waiting import TIMEOUT_SECONDS, wait_until

ROOT = Path(__file__).resolve().parents[2]
PROGRAM = ROOT / ".build" / "open-webui" / "bin" / "open-webui"
FILTER = ROOT / "integrations" / "open-webui" / "headroom_filter.py"
PASSWORD = "Secret-of-the-tests-1"


class OpenWebUI:
    def __init__(self, model_url):
        directory = Path(processes.directory())
        (directory / "data").mkdir()
        self.port, self.log = processes.free_port(), str(directory / "server.log")
        self.process = processes.start(
            [str(PROGRAM), "serve", "--host", "127.0.0.1", "--port", str(self.port)], log=self.log, cwd=directory,
            env=environment(
                DATA_DIR=str(directory / "data"), WEBUI_SECRET_KEY="of-the-tests", PYTHONPATH=str(ROOT / "clients" / "python"),
                # Without the network: no models for search in documents, no news.
                OFFLINE_MODE="True", HF_HUB_OFFLINE="1", RAG_EMBEDDING_ENGINE="openai", ENABLE_OLLAMA_API="False",
                ANONYMIZED_TELEMETRY="False", DO_NOT_TRACK="true", SCARF_NO_ANALYTICS="true",
                OPENAI_API_BASE_URL=model_url, OPENAI_API_KEY="unused", BYPASS_MODEL_ACCESS_CONTROL="True",
            ),
        )  # fmt: skip
        wait_until(self.is_ready, lambda: f"Open WebUI; its log says\n{self.output()}")
        # The first account is the administrator's.
        self.administrator = self.sign_in("signup", name="Administrator", email="administrator@example.com")

    def is_ready(self):
        if self.process.poll() is not None:
            raise AssertionError(f"Open WebUI has ended:\n{self.output()}")
        try:
            return self.session().get("/health").is_success
        except httpx.TransportError:
            return False

    def output(self):
        with open(self.log, errors="replace") as file:
            return file.read()[-6000:]

    def session(self, token=None):
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        return httpx.Client(base_url=f"http://127.0.0.1:{self.port}", headers=headers, timeout=TIMEOUT_SECONDS, trust_env=False)

    def sign_in(self, how, **account):
        return Account(self, answer(self.session().post(f"/api/v1/auths/{how}", json={"password": PASSWORD, **account})))

    def new_account(self):
        account = {"name": "Ann", "email": f"{uuid.uuid4()}@example.com", "password": PASSWORD, "role": "user"}
        return Account(self, answer(self.administrator.session.post("/api/v1/auths/add", json=account)))

    def new_group(self, name, *accounts):
        """The id of a group of these accounts."""
        session = self.administrator.session
        created = answer(session.post("/api/v1/groups/create", json={"name": name, "description": name}))["id"]
        answer(session.post(f"/api/v1/groups/id/{created}/users/add", json={"user_ids": [each.id for each in accounts]}))
        return created

    def install_filter(self):
        """As an administrator does in the panel Functions: pastes the file, switches it on, and for every model."""
        function = {"id": "headroom", "name": "Headroom", "content": FILTER.read_text(), "meta": {"description": "Headroom"}}
        answer(self.administrator.session.post("/api/v1/functions/create", json=function))
        for switch in ("toggle", "toggle/global"):
            answer(self.administrator.session.post(f"/api/v1/functions/id/headroom/{switch}"))

    def set_valves(self, **valves):
        answer(self.administrator.session.post("/api/v1/functions/id/headroom/valves/update", json=valves))

    def stop(self):
        processes.stop(self.process)


class Account:
    def __init__(self, server, signed_in):
        self.id, self.session = signed_in["id"], server.session(signed_in["token"])

    def chat(self, model="answers", stream=True):
        """Sends a first message as the page does; returns the chat's id and the answer's."""
        message, reply = str(uuid.uuid4()), str(uuid.uuid4())
        user_message = {"id": message, "parentId": None, "childrenIds": [reply], "role": "user", "content": "Hello", "models": [model]}
        body = {
            "model": model, "stream": stream, "messages": [{"role": "user", "content": "Hello"}], "parent_id": None,
            "user_message": user_message, "id": reply, "session_id": "session-1",
            "background_tasks": {"title_generation": True, "tags_generation": True},
        }  # fmt: skip
        return answer(self.session.post("/api/chat/completions", json=body))["chat_id"], reply

    def reply(self, chat, reply):
        """The answer as the page shows it."""
        history = answer(self.session.get(f"/api/v1/chats/{chat}"))["chat"].get("history") or {}
        return (history.get("messages") or {}).get(reply) or {}

    def finished(self, chat, reply):
        return wait_until(lambda: (found := self.reply(chat, reply)).get("done") and found, lambda: f"an end of {self.reply(chat, reply)}")

    def press_stop(self, chat):
        answer(self.session.post(f"/api/tasks/chat/{chat}/stop"))

    def request(self, model="answers", stream=False):
        """Over Open WebUI's API, without a chat."""
        body = {"model": model, "stream": stream, "messages": [{"role": "user", "content": "Hello"}]}
        return self.session.post("/api/chat/completions", json=body)


def answer(response):
    if not response.is_success:
        raise AssertionError(f"{response.request.url.path}: {response.status_code} {response.text}")
    return response.json()

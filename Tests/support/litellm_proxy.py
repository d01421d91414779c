"""A running proxy of LiteLLM with the callback of integrations/litellm, in an environment of its own, .build/litellm."""

import contextlib
import json
import os
import shutil
import signal
import subprocess
from pathlib import Path

import httpx

from . import processes
from .service import environment
from .waiting import TIMEOUT_SECONDS, wait_until

ROOT = Path(__file__).resolve().parents[2]
PYTHON = ROOT / ".build" / "litellm" / "bin" / "python3"
CALLBACK = ROOT / "integrations" / "litellm" / "headroom_limit.py"
EXAMPLE = CALLBACK.with_name("config.yaml")
MASTER_KEY = "sk-headroom-example"

CONFIG = """
model_list:
{models}
router_settings:
  num_retries: 1
  retry_after: 0
  disable_cooldowns: true
  model_group_alias: {{"also-answers": "answers"}}
  fallbacks: [{{"falls-back": ["answers"]}}]
litellm_settings:
  callbacks: headroom_limit.proxy_handler_instance
general_settings:
  master_key: {master_key}
"""

MODEL = """  - model_name: {name}
    litellm_params:
      model: openai/{model}
      api_base: {url}
      api_key: unused
      max_retries: 0
"""


class LiteLLM:
    """The installed LiteLLM, imported once; it starts any number of proxies."""

    def __init__(self):
        self.log = processes.directory() + "/litellm.log"
        self.process = processes.start(
            # As a text, because beside the file there are modules with the names of Python's own.
            [str(PYTHON), "-c", Path(__file__).with_name("litellm_forks.py").read_text()], log=self.log, stdin=subprocess.PIPE,
            stdout=subprocess.PIPE, text=True, bufsize=1,
            # Without the network: prices from the package, and no reports.
            env=environment(
                LITELLM_LOCAL_MODEL_COST_MAP="True", LITELLM_TELEMETRY="False", PYTHONPATH=str(ROOT / "clients" / "python")
            ),
        )  # fmt: skip

    def proxy(self, config, **settings):
        """Starts a proxy, and waits until it is ready. `settings` are those of headroom_limit.py, in lower case."""
        directory = Path(processes.directory())
        shutil.copy(CALLBACK, directory)
        (directory / "config.yaml").write_text(config)
        port, log = processes.free_port(), str(directory / "proxy.log")
        arguments = ["--config", str(directory / "config.yaml"), "--host", "127.0.0.1", "--port", str(port)]
        variables = {f"HEADROOM_{name.upper()}": str(value) for name, value in {"timeout_seconds": TIMEOUT_SECONDS, **settings}.items()}
        with contextlib.suppress(BrokenPipeError):
            print(json.dumps({"arguments": arguments, "environment": variables, "log": log}), file=self.process.stdin, flush=True)
        answer = self.process.stdout.readline()
        if not answer:
            raise AssertionError(f"LiteLLM could not be imported:\n{read(self.log)}")
        return LiteLLMProxy(int(answer), port, log).ready()

    def stop(self):
        processes.stop(self.process)


class LiteLLMProxy:
    def __init__(self, process_id, port, log):
        self.process_id, self.port, self.log = process_id, port, log
        self.url = f"http://127.0.0.1:{port}"

    def ready(self):
        wait_until(self.is_ready, lambda: f"the proxy; its log says\n{read(self.log)}")
        return self

    def is_ready(self):
        if not processes.is_alive(self.process_id):
            raise AssertionError(f"the proxy has ended:\n{read(self.log)}")
        try:
            return httpx.get(f"{self.url}/health/liveliness", timeout=TIMEOUT_SECONDS, trust_env=False).is_success
        except httpx.TransportError:
            return False

    def client(self):
        """An asynchronous client with as many connections as the test has requests."""
        return httpx.AsyncClient(
            base_url=self.url, headers={"Authorization": f"Bearer {MASTER_KEY}"}, timeout=TIMEOUT_SECONDS,
            limits=httpx.Limits(max_connections=None), trust_env=False,
        )  # fmt: skip

    def stop(self):
        os.kill(self.process_id, signal.SIGTERM)
        wait_until(lambda: not processes.is_alive(self.process_id), "the proxy ends")


def config(model_url):
    """The stub's models, and one that falls back to another."""
    names = {**{name: name for name in ("answers", "fails", "breaks", "pauses", "waits")}, "falls-back": "fails"}
    models = "".join(MODEL.format(name=name, model=model, url=model_url) for name, model in names.items())
    return CONFIG.format(models=models, master_key=MASTER_KEY)


def read(log):
    with open(log, errors="replace") as file:
        return file.read()[-6000:]


def message(user, model="answers", **options):
    """The body of a request."""
    body = {"model": model, "messages": [{"role": "user", "content": "Hello"}], **options}
    return body if user is None else {**body, "user": user}

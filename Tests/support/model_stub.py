"""A server with the API of OpenAI, whose models answer, fail, break off or wait."""

import http.server
import json
import threading

from .waiting import TIMEOUT_SECONDS

USAGE = {"prompt_tokens": 7, "completion_tokens": 5, "total_tokens": 12}


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self):
        request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        model = request["model"]
        self.server.asked.append(model)
        if model == "fails":
            self.respond(500, {"error": {"message": "the model has failed", "type": "server_error"}})
        elif request.get("stream"):
            self.stream(model, request)
        else:
            message = {"role": "assistant", "content": "Hello!"}
            choices = [{"index": 0, "message": message, "finish_reason": "stop"}]
            self.respond(200, {**self.head("chat.completion", model), "choices": choices, "usage": USAGE})

    def stream(self, model, request):
        """`waits` sends nothing until the test opens the gate; `pauses` waits after the first word; `breaks` breaks off there."""
        if model == "waits":
            self.server.gate.wait(TIMEOUT_SECONDS)
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        self.chunk(model, {"role": "assistant", "content": "Hel"})
        if model == "breaks":
            self.close_connection = True
            return
        if model == "pauses":
            self.server.gate.wait(TIMEOUT_SECONDS)
        self.chunk(model, {"content": "lo!"})
        self.chunk(model, {}, finish_reason="stop")
        if (request.get("stream_options") or {}).get("include_usage"):
            self.event({**self.head("chat.completion.chunk", model), "choices": [], "usage": USAGE})
        self.write(b"data: [DONE]\n\n")
        self.wfile.write(b"0\r\n\r\n")

    def chunk(self, model, delta, finish_reason=None):
        choices = [{"index": 0, "delta": delta, "finish_reason": finish_reason}]
        self.event({**self.head("chat.completion.chunk", model), "choices": choices})

    def event(self, content):
        self.write(b"data: " + json.dumps(content).encode() + b"\n\n")

    def write(self, data):
        self.wfile.write(b"%x\r\n%s\r\n" % (len(data), data))
        self.wfile.flush()

    @staticmethod
    def head(kind, model):
        return {"id": "answer-1", "object": kind, "created": 1, "model": model}

    def respond(self, status, content):
        data = json.dumps(content).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def do_GET(self):
        models = [{"id": name, "object": "model"} for name in ("answers", "fails", "breaks", "pauses", "waits")]
        self.respond(200, {"object": "list", "data": models})

    def log_message(self, *_):
        pass


class ModelStub(http.server.ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 512

    def __init__(self):
        super().__init__(("127.0.0.1", 0), Handler)
        self.asked = []
        """The model of each request."""
        self.gate = threading.Event()
        """What `waits` and `pauses` wait for."""
        threading.Thread(target=self.serve_forever, daemon=True).start()

    @property
    def url(self):
        return f"http://127.0.0.1:{self.server_port}/v1"

    def handle_error(self, request, client_address):
        """A client that hangs up is what some tests are about."""

    def close(self):
        self.gate.set()
        self.shutdown()
        self.server_close()

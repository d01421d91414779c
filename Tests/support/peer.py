"""A server that answers PING and INFO, may require a token, and records each request of its clients."""

import socketserver
import threading


class Peer:
    def __init__(self, token=None, version="1"):
        """With `token` it requires that token; without, it refuses any."""
        self.token = token
        self.version = version
        self.received = []
        """Each connection's requests, in order."""
        peer = self

        class Handler(socketserver.StreamRequestHandler):
            def handle(self):
                received, is_authenticated = [], peer.token is None
                peer.received.append(received)
                while words := self.request_words():
                    received.append(" ".join(words))
                    if words[0] == "AUTH":
                        is_authenticated = is_authenticated or words[1:] == [peer.token]
                        reply = "+OK" if is_authenticated else "-NOAUTH no such token"
                        answer = "-BADARG no token is needed" if peer.token is None else reply
                    elif not is_authenticated:
                        answer = "-NOAUTH send AUTH first"
                    else:
                        replies = {"PING": "+PONG", "INFO": f"*2\r\n+version={peer.version}\r\n+database=up"}
                        answer = replies.get(words[0], "-ERR unknown command")
                    self.wfile.write(answer.encode() + b"\r\n")

            def request_words(self):
                line = self.rfile.readline().decode().strip()
                if not line.startswith("*"):
                    return line.split()
                words = []
                for _ in range(int(line[1:])):
                    self.rfile.readline()
                    words.append(self.rfile.readline().decode().strip())
                return words

        class Server(socketserver.ThreadingTCPServer):
            allow_reuse_address, daemon_threads = True, True

        self.server = Server(("127.0.0.1", 0), Handler)
        self.port = self.server.server_address[1]
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.server.shutdown()
        self.server.server_close()

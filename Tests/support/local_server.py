"""A server of HTTP on this machine, in a thread of the test."""

import threading
from http.server import ThreadingHTTPServer


class LocalServer:
    def __init__(self, handler, port=0):
        """`port`: 0 for any."""
        self.server = ThreadingHTTPServer(("127.0.0.1", port), handler)
        self.server.daemon_threads = True
        self.port = self.server.server_address[1]
        self.thread = threading.Thread(target=self.server.serve_forever, args=(0.02,), daemon=True)
        self.thread.start()

    def close(self):
        self.server.shutdown()
        self.server.server_close()
        self.thread.join()

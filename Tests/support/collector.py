"""A collector of traces: OTLP over HTTP in JSON, read with OpenTelemetry's own definitions."""

import base64
import json
from http.server import BaseHTTPRequestHandler

from google.protobuf import json_format
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.trace.v1 import trace_pb2

from .local_server import LocalServer
from .waiting import wait_until

IDENTIFIERS = ("traceId", "spanId", "parentSpanId")


def value(attribute):
    """The Python value of an AnyValue."""
    return getattr(attribute, attribute.WhichOneof("value"))


def attributes(pairs):
    return {pair.key: value(pair.value) for pair in pairs}


def with_bytes(document):
    """OTLP writes identifiers in hexadecimal, where Protobuf's own JSON has Base64."""
    if isinstance(document, list):
        return [with_bytes(each) for each in document]
    if not isinstance(document, dict):
        return document
    return {
        name: base64.b64encode(bytes.fromhex(each)).decode() if name in IDENTIFIERS else with_bytes(each) for name, each in document.items()
    }


class Span:
    def __init__(self, span, resource):
        self.name = span.name
        self.trace = span.trace_id.hex()
        self.id = span.span_id.hex()
        self.parent = span.parent_span_id.hex()
        self.state = span.trace_state
        self.kind = trace_pb2.Span.SpanKind.Name(span.kind).removeprefix("SPAN_KIND_").lower()
        self.start, self.end = span.start_time_unix_nano, span.end_time_unix_nano
        self.attributes = attributes(span.attributes)
        self.is_error = span.status.code == trace_pb2.Status.STATUS_CODE_ERROR
        self.resource = resource

    @property
    def seconds(self):
        return (self.end - self.start) / 1e9

    def __repr__(self):
        return f"{self.kind} {self.name} {self.attributes}"


class Collector(LocalServer):
    """Answers 200, or `status`."""

    def __init__(self, port=0):
        self.status = 200
        self.bodies = []
        """Of all requests, as text."""
        self.headers = []
        self.spans = []
        """Of requests that were answered with 200."""
        collector = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self):
                body = self.rfile.read(int(self.headers["Content-Length"])).decode()
                collector.headers.append({name.lower(): text for name, text in self.headers.items()})
                collector.bodies.append(body)
                status = collector.status if self.path == "/v1/traces" else 404
                if status == 200:
                    collector.read(json.loads(body))
                self.send_response(status)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", "2")
                self.end_headers()
                self.wfile.write(b"{}")

            def log_message(self, *_):
                pass

        super().__init__(Handler, port)

    def read(self, document):
        # Raises an error for every field that the definitions don't have.
        request = json_format.ParseDict(with_bytes(document), ExportTraceServiceRequest())
        for resource in request.resource_spans:
            described = attributes(resource.resource.attributes)
            for scope in resource.scope_spans:
                self.spans += [Span(span, described) for span in scope.spans]

    @property
    def url(self):
        return f"http://127.0.0.1:{self.port}/v1/traces"

    def of(self, trace):
        return [span for span in list(self.spans) if span.trace == trace]

    def named(self, name):
        return [span for span in list(self.spans) if span.name == name]

    def wait_for(self, name, count=1):
        wait_until(lambda: len(self.named(name)) >= count, lambda: f"{count} spans {name}; there are {self.spans}")
        return self.named(name)

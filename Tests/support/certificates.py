"""Certificates for tests, made by openssl on elliptic curves, which is fast."""

import os
import ssl
import subprocess

from . import processes
from .waiting import TIMEOUT_SECONDS


def openssl(*arguments):
    subprocess.run(["openssl", *arguments], check=True, capture_output=True, timeout=TIMEOUT_SECONDS)


class Authority:
    """A CA for tests, with the certificates that it signed, in a directory of its own."""

    def __init__(self, name="Test CA"):
        self.directory = processes.directory()
        self.certificate = self.directory + "/ca.pem"
        self.key = self.directory + "/ca.key"
        openssl("req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "30",
                "-subj", f"/CN={name}", "-keyout", self.key, "-out", self.certificate)  # fmt: skip

    def issue(self, name, *names, days=30, file=None):
        """A certificate and its key; `names` as in `DNS:localhost` and `IP:127.0.0.1`."""
        base = f"{self.directory}/{file or name}"
        request, extensions = base + ".csr", base + ".cnf"
        with open(extensions, "w") as settings:
            settings.write("basicConstraints=critical,CA:FALSE\n")
            if names:
                settings.write(f"subjectAltName={','.join(names)}\n")
        openssl("req", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-subj", f"/CN={name}",
                "-keyout", base + ".key", "-out", request)  # fmt: skip
        openssl("x509", "-req", "-in", request, "-CA", self.certificate, "-CAkey", self.key, "-CAcreateserial",
                "-days", str(days), "-extfile", extensions, "-out", base + ".pem")  # fmt: skip
        os.chmod(base + ".key", 0o600)
        return base + ".pem", base + ".key"

    def server(self, name="localhost", **options):
        return self.issue(name, f"DNS:{name}", "IP:127.0.0.1", "IP:::1", **options)

    def client_context(self, certificate=None):
        """The SSLContext of a client that trusts this CA."""
        context = ssl.create_default_context(cafile=self.certificate)
        if certificate:
            context.load_cert_chain(*certificate)
        return context

"""The service opens a port to other machines only if TLS and tokens protect it, or if `trusted-network` is set."""

import re
import shutil

from support import processes
from support.case import Case
from support.certificates import Authority
from support.waiting import wait_until
from support.wire import LineConnection


class ProtectedMode(Case):
    FLAGS = None

    def assert_refused(self, *flags, missing, **options):
        service = self.serve(*flags, wait=False, **options)
        self.assertNotEqual(service.wait(), 0)
        self.assertEqual(service.output(), "")
        self.assertRegex(service.log(), rf"listen=\S+ can be reached by other machines.* protection by {missing}\.")
        for alternative in ("--listen 127.0.0.1:", "tls-certificate", "headroom token create", "trusted-network=yes"):
            self.assertIn(alternative, service.log())

    def assert_starts(self, *flags, tls=None, **options):
        service = self.serve(*flags, wait=False, **options)
        ready = wait_until(lambda: re.search(r"^ready listen=\S+:(\d+) ", service.output()), service.log)
        with LineConnection(int(ready[1]), tls=tls) as connection:
            self.assertEqual(connection.send_command("PING"), "+PONG")

    def test_an_address_that_others_reach_is_refused(self):
        host = processes.completed(["hostname", "-I"]).stdout.split() if shutil.which("hostname") else []
        for address in ["0.0.0.0", *[own for own in host if ":" not in own][:1]]:
            with self.subTest(address=address):
                self.assert_refused("--listen", f"{address}:0", missing="TLS")

    def test_the_environment_does_not_bypass_it(self):
        self.assert_refused("--listen", "0.0.0.0:0", missing="TLS", env={"HEADROOM_TRUSTED_NETWORK": "no"})

    def test_a_trusted_network_allows_it(self):
        self.assert_starts("--listen", "0.0.0.0:0", "--trusted-network", "yes")
        self.assert_starts("--listen", "0.0.0.0:0", env={"HEADROOM_TRUSTED_NETWORK": "yes"})

    def test_loopback_needs_nothing(self):
        self.assert_starts("--listen", "localhost:0")

    def test_tls_without_tokens_is_not_enough(self):
        authority = Authority()
        certificate, key = authority.server()
        tls = ["--tls-certificate", certificate, "--tls-key", key]
        self.assert_refused("--listen", "0.0.0.0:0", *tls, missing="tokens")
        self.assert_starts("--listen", "0.0.0.0:0", *tls, "--trusted-network", "yes", tls=authority.client_context())

"""TLS to PostgreSQL: with sslmode=verify-full only the right server is accepted."""

import os
import shutil
import socketserver
import threading

from support import processes
from support.case import Case
from support.certificates import Authority
from support.postgres import as_postgres_user
from support.service import Service, command


class DatabaseTLS(Case):
    FLAGS = None
    OWN_CLUSTER = True
    MIGRATED = False

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.authority, cls.stranger = Authority("Database CA"), Authority("Database CA")
        certificate, key = cls.authority.issue("localhost", "DNS:localhost")
        for file, name in ((certificate, "server.crt"), (key, "server.key")):
            target = shutil.copy(file, f"{cls.cluster.data}/{name}")
            os.chmod(target, 0o600)
            account = as_postgres_user()
            if account:
                os.chown(target, account["user"], account["group"])
        cls.port = processes.free_port()
        cls.psql.close()
        cls.cluster.stop_immediately()
        with open(cls.cluster.data + "/postgresql.conf", "a") as file:
            file.write(f"ssl = on\nlisten_addresses = '127.0.0.1'\nport = {cls.port}\n")
        with open(cls.cluster.data + "/pg_hba.conf", "w") as file:
            # TCP connections require TLS.
            file.write("local all all trust\nhostssl all all 127.0.0.1/32 trust\n")
        # psql and pg_isready use the socket, whose name contains the port.
        os.environ["PGPORT"] = str(cls.port)
        try:
            cls.cluster.start()
            cls.psql = cls.cluster.session(cls.database)
        finally:
            del os.environ["PGPORT"]

    def url(self, host="localhost", ca=None, mode="verify-full"):
        # The address is given so that libpq tries no other address of that name.
        return (
            f"host={host} hostaddr=127.0.0.1 port={self.port} dbname={self.database} user=postgres sslmode={mode}"
            f" sslrootcert={ca or self.authority.certificate}"
        )

    def test_the_right_server_is_used_and_every_connection_is_encrypted(self):
        migrated = command("migrate", database_url=self.url())
        self.assertEqual(migrated.returncode, 0, migrated)
        service = self.serve_url(self.url())
        user = self.user()
        self.assertTrue(service.send_command(f"CONSUME {user}").startswith("+ALLOWED "))
        ours = "from pg_stat_ssl join pg_stat_activity using (pid) where application_name like 'headroom%'"
        self.assertGreaterEqual(self.psql.number(f"select count(*) {ours} and ssl"), 2)
        self.assertEqual(self.psql.number(f"select count(*) {ours} and not ssl"), 0)

    def serve_url(self, url, wait=True):
        service = Service(database_url=url, as_owner=True, wait=wait)
        self.services.append(service)
        return service

    def test_another_server_is_refused_at_once_by_migrate_and_at_the_start(self):
        for what, url, error, advice in (
            ("a CA that did not sign it", self.url(ca=self.stranger.certificate), "certificate verify failed", "sslrootcert"),
            ("another name", self.url(host="database.example"), 'does not match host name "database.example"', "verify-full"),
            ("no CA", self.url(ca="/nowhere/ca.pem"), 'root certificate file "/nowhere/ca.pem" does not exist', "sslrootcert"),
        ):
            with self.subTest(what):
                migrated = command("migrate", database_url=url)
                self.assertNotEqual(migrated.returncode, 0)
                service = self.serve_url(url, wait=False)
                self.assertNotEqual(service.wait(), 0)
                for output in (migrated.stderr, service.log()):
                    self.assertIn(error, output)
                    self.assertIn(advice, output)
                self.assertEqual(service.output(), "")
                self.assertNotIn("cannot be reached yet", service.log(), "nothing is waited for")

    def test_a_server_that_speaks_no_tls_is_refused(self):
        class Plain(socketserver.BaseRequestHandler):
            def handle(self):
                # PostgreSQL's answer to a request for TLS if it has none.
                self.request.recv(8)
                self.request.sendall(b"N")

        with socketserver.TCPServer(("127.0.0.1", 0), Plain) as server:
            threading.Thread(target=server.serve_forever, daemon=True).start()
            url = self.url().replace(f"port={self.port}", f"port={server.server_address[1]}")
            migrated = command("migrate", database_url=url)
            server.shutdown()
        self.assertNotEqual(migrated.returncode, 0)
        self.assertIn("server does not support SSL", migrated.stderr)
        self.assertIn("turn ssl on in PostgreSQL", migrated.stderr)

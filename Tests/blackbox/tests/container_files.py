"""The Dockerfile, the compose files and the commands of docs/containers.md, without Docker and without a cluster: files are valid and agree
with each other, and what runs outside a container is run."""

import os
import re
import shlex
import sys
import unittest

import yaml
from support import kubernetes, postgres, processes, settings
from support.case import LONG_TIMEOUTS, Case
from support.nightly import nightly
from support.postgres import Cluster
from support.printed import ROOT, blocks, read
from support.reference import documented
from support.service import Service, command, environment, succeed
from support.waiting import wait_until

PAGE = "docs/containers.md"
COMPOSE = ("docker-compose.yml", "docker-compose.citus.yml", "deploy/compose/compose.yml", "deploy/compose/stripe.yml")
MADE = ("tls/fullchain.pem", "tls/privkey.pem", "backups", "secrets/stripe-signing-secret")
"""What make-secrets, or a user, puts beside compose.yml."""
HEADROOM, POSTGRESQL = 10001, 999
"""The accounts of the images."""


def run(*arguments, **options):
    return processes.completed(arguments, **options)


def version():
    return yaml.safe_load(read("deploy/kubernetes/components/release/kustomization.yaml"))["images"][0]["newTag"]


class Image(unittest.TestCase):
    def setUp(self):
        self.text = read("Dockerfile")
        self.stages = re.split(r"(?m)^FROM ", re.sub(r"\\\n\s*", "", self.text))[1:]

    def stage(self, name):
        return next(stage for stage in self.stages if stage.splitlines()[0].endswith(f" AS {name}"))

    def test_every_file_names_the_version_of_the_service(self):
        self.assertIn(f'current = "{version()}"', read("Sources/Engine/Schema/Version.swift"))

    def test_every_base_image_is_pinned(self):
        names = set()
        for stage in self.stages:
            base, name = re.match(r"(\S+) AS (\S+)\n", stage).groups()
            if base not in names:
                self.assertRegex(base, r"^(swift:6\.3-bookworm|debian:bookworm-\d{8}-slim)@sha256:[0-9a-f]{64}$")
            names.add(name)
        self.assertEqual(names, {"build", "debian", "runtime", "unpack", "release", "source"})
        self.assertIn("\nCOPY --from=build /out/ /\n", self.stages[-1], "the default target compiles")

    def test_it_runs_as_a_number_that_manifests_and_compose_files_know(self):
        runtime = self.stage("runtime")
        self.assertEqual(re.findall(r"(?m)^USER (.*)$", self.text), [f"{HEADROOM}:{HEADROOM}"])
        self.assertIn(f"useradd --uid {HEADROOM} --gid {HEADROOM} ", runtime)
        self.assertIn('\nENTRYPOINT ["headroom"]\nCMD ["serve"]\n', runtime)
        for name in ("release", "source"):
            self.assertRegex(self.stage(name), r"^runtime AS")
            self.assertTrue(self.stage(name).rstrip().endswith('RUN ["headroom", "--version"]'))
        script = read("deploy/compose/make-secrets")
        self.assertIn(f"\nheadroom={HEADROOM}\npostgresql={POSTGRESQL}\n", script)

    def test_the_binary_of_a_release_is_found_wherever_the_tarball_has_its_directory(self):
        unpack = self.stage("unpack")
        source, target = re.search(r"(?m)^COPY (\S+) (\S+)$", unpack).groups()
        self.assertEqual(source, "dist/headroom-${VERSION}-linux-x86_64.tar.gz")
        script = re.search(r"(?m)^RUN (.*)$", unpack)[1]
        for layout in (".", "headroom-0.2.0-linux-x86_64"):
            contents, directory = processes.directory(), processes.directory()
            os.makedirs(f"{contents}/{layout}/bin")
            for name in ("headroom", "headroom-other"):
                with open(f"{contents}/{layout}/bin/{name}", "w") as file:
                    file.write(name)
            packed = run("tar", "--create", "--gzip", f"--file={directory}/{target}", f"--directory={contents}", layout)
            self.assertEqual(packed.returncode, 0, packed.stderr)
            ran = run("sh", "-euc", script.replace("/out/", f"{directory}/out/"), cwd=directory)
            self.assertEqual(ran.returncode, 0, ran.stderr)
            binary = f"{directory}/out/usr/local/bin/headroom"
            self.assertEqual((read(binary), os.stat(binary).st_mode & 0o777), ("headroom", 0o755))

    def test_the_builder_gets_what_is_copied(self):
        allowed = {line.removeprefix("!") for line in read(".dockerignore").splitlines() if line.startswith("!")}
        copied = {word.rstrip("*") for sources in re.findall(r"(?m)^COPY ((?!--from)\S.*) \S+$", self.text) for word in sources.split()}
        for source in copied:
            pattern = source.removeprefix("./").replace("${VERSION}-linux-x86_64", "*-linux-*")
            self.assertIn(pattern, allowed)


class ComposeFiles(unittest.TestCase):
    def setUp(self):
        self.files = {path: yaml.safe_load(read(path)) for path in COMPOSE}
        self.file = self.files["deploy/compose/compose.yml"]
        self.services = self.file["services"]

    def test_they_are_what_the_schema_of_compose_allows(self):
        paths = [os.path.join(ROOT, path) for path in COMPOSE]
        ran = run(sys.executable, "-m", "check_jsonschema", "--builtin-schema", "vendor.compose-spec", *paths)
        self.assertEqual(ran.returncode, 0, ran.stdout + ran.stderr)

    def test_everything_that_one_names_exists(self):
        for path, file in self.files.items():
            extends = self.file if path.endswith("stripe.yml") else file
            directory = os.path.dirname(os.path.join(ROOT, path))
            for name, service in file["services"].items():
                label = (path, name)
                self.assertLessEqual(set(service.get("depends_on", {})), set(extends["services"]), label)
                self.assertLessEqual(set(service.get("networks", [])), set(extends.get("networks", {})), label)
                self.assertLessEqual(set(service.get("secrets", [])), set(file.get("secrets", {})), label)
                for volume in service.get("volumes", []):
                    source = volume.split(":")[0]
                    if source not in file.get("volumes", {}) and source not in ("./tls", "./backups"):
                        self.assertTrue(os.path.exists(os.path.join(directory, source)), volume)
                for secret in re.findall(r"/run/secrets/([\w-]+)", str(service)):
                    self.assertIn(secret, service["secrets"], label)
                if "build" in service:
                    self.assertTrue(os.path.exists(os.path.join(directory, service["build"], "Dockerfile")))

    def test_settings_exist(self):
        known = documented("setting")
        for path, file in self.files.items():
            for service in file["services"].values():
                for name in service.get("environment", {}):
                    if name.startswith("HEADROOM_"):
                        self.assertIn(name.removeprefix("HEADROOM_").lower().replace("_", "-"), known, path)

    def test_containers_have_no_right_that_they_do_not_need(self):
        for name, service in self.services.items():
            self.assertIs(service["read_only"], True, name)
            self.assertEqual((service["cap_drop"], service["security_opt"]), (["ALL"], ["no-new-privileges:true"]), name)
            self.assertEqual("ports" in service, name == "headroom")
            self.assertEqual("profiles" in service, name in ("operator", "backup"), "`up` starts the others")
            image = service["image"]
            if name in ("database", "backup"):
                self.assertRegex(image, r"^postgres:17-bookworm@sha256:[0-9a-f]{64}$")
                self.assertEqual(service["user"], f"{HEADROOM}:{HEADROOM}" if name == "backup" else f"{POSTGRESQL}:{POSTGRESQL}")
                # The same in both.
                self.assertIn(image, read("deploy/kubernetes/components/postgresql/stateful-set.yaml"))
            else:
                self.assertEqual(image, f"headroom:${{HEADROOM_VERSION:-{version()}}}")
        self.assertEqual(self.services["operator"]["logging"], {"driver": "none"})
        self.assertEqual(self.services["headroom"]["depends_on"]["migrate"], {"condition": "service_completed_successfully"})
        self.assertIs(self.file["networks"]["database"]["internal"], True)
        self.assertEqual([name for name, service in self.services.items() if "clients" in service["networks"]], ["headroom"])
        seconds = int(self.services["headroom"]["stop_grace_period"].removesuffix("s"))
        drain = int(documented("setting")["drain-timeout-ms"][0].strip("`"))
        self.assertGreater(seconds * 1000, drain + 2000)


@nightly("`ComposeFiles` reads what is in them")
class ComposeRuns(Case):
    """What the containers do with the files that make-secrets made, as their accounts, on a PostgreSQL that asks for passwords."""

    FLAGS = None

    @classmethod
    def setUpClass(cls):
        if os.geteuid() != 0:
            raise unittest.SkipTest("make-secrets and the containers' accounts need root")
        super().setUpClass()
        cls.directory = processes.directory(0o755)
        cls.server = Cluster(has_roles=False)
        cls.addClassCleanup(cls.server.end)
        cls.server.sql("create role headroom superuser login", "create database headroom owner headroom")
        cls.compose = yaml.safe_load(read("deploy/compose/compose.yml"))["services"]

    def make(self):
        ran = run(os.path.join(ROOT, "deploy/compose/make-secrets"), "headroom.example", self.directory)
        self.assertEqual(ran.returncode, 0, ran.stderr)
        return ran.stderr

    def as_account(self, number):
        return {"user": number, "group": number, "extra_groups": []}

    def inside(self, text):
        """What a container reads, with the paths and the host of this test."""
        for path, here in (("/run/secrets", "secrets"), ("/etc/headroom/tls", "tls"), ("/backups/", "backups/")):
            text = text.replace(path, f"{self.directory}/{here}")
        return text.replace("host=database port=5432", f"host={self.server.home}")

    def test_secrets_logins_certificate_and_backup_work_together(self):
        self.assertIn("self-signed", self.make())
        first = {name: read(f"{self.directory}/secrets/{name}") for name in os.listdir(f"{self.directory}/secrets")}
        with open(f"{self.directory}/secrets/stripe-signing-secret", "w") as file:
            file.write("whsec_of_a_test\n")
        self.assertEqual(self.make(), "", "what exists is kept")
        self.assertEqual({name: read(f"{self.directory}/secrets/{name}") for name in first}, first)
        stats = {name: os.stat(f"{self.directory}/secrets/{name}") for name in os.listdir(f"{self.directory}/secrets")}
        self.assertEqual({stat.st_mode & 0o777 for stat in stats.values()}, {0o400})
        self.assertEqual({name: stat.st_uid for name, stat in stats.items()}, {
            "owner-password": POSTGRESQL, "backend-password": POSTGRESQL, "owner-passfile": HEADROOM, "backend-passfile": HEADROOM,
            "stripe-signing-secret": HEADROOM,
        })  # fmt: skip
        # A container gets single files, whatever their directory's mode.
        os.chmod(self.directory + "/secrets", 0o711)

        # The image sets the owner's password, and reads this file.
        self.server.sql(f"alter role headroom password '{first['owner-password'].strip()}'")
        database = self.compose["database"]["environment"]
        given = {name: self.inside(database[name]) for name in ("POSTGRES_USER", "POSTGRES_DB", "BACKEND_USER", "BACKEND_PASSWORD_FILE")}
        tools = os.pathsep.join([os.path.dirname(settings.binary), postgres.programs(), os.environ["PATH"]])
        logins = next(volume for volume in self.compose["database"]["volumes"] if "initdb.d" in volume).split(":")[0]
        script = os.path.join(ROOT, "deploy/compose", logins)
        ran = run("bash", "-Eeo", "pipefail", "-c", f". {script}", env=environment(PATH=tools, PGHOST=self.server.home, **given))
        self.assertEqual((ran.returncode, ran.stdout, ran.stderr), (0, "", ""))
        with open(f"{self.server.data}/pg_hba.conf", "w") as file:
            file.write("local all postgres trust\nlocal all all scram-sha-256\n")
        self.server.sql("select pg_reload_conf()")

        owner, backend = (self.inside(self.compose[name]["environment"]["DATABASE_URL"]) for name in ("migrate", "headroom"))
        self.assertNotEqual(command("migrate", database_url=owner.replace("passfile=", "passfile=/nonexistent")).returncode, 0)
        arguments = self.compose["migrate"]["command"]
        migrated = run(settings.binary, *arguments, env=environment(DATABASE_URL=owner), cwd="/", **self.as_account(HEADROOM))
        self.assertEqual((migrated.returncode, "WARNING" in migrated.stderr), (0, False), migrated.stderr)
        self.check_service(backend, owner)
        self.check_backup()

    def check_service(self, backend, owner):
        stripe = yaml.safe_load(read("deploy/compose/stripe.yml"))["services"]["headroom"]["environment"]
        given = {name: self.inside(value) for name, value in {**self.compose["headroom"]["environment"], **stripe}.items()}
        for name in ("DATABASE_URL", "HEADROOM_LISTEN", "HEADROOM_HTTP"):
            del given[name]
        service = Service(database_url=backend, as_owner=True, env={**LONG_TIMEOUTS, **given}, **self.as_account(HEADROOM))
        self.addCleanup(service.stop)
        created = succeed("token", "create", "backend", "--scope", "chat", database_url=owner)
        path = self.directory + "/token"
        with open(path, "w") as file:
            file.write(created.stdout)
        flags = ["--target", f"localhost:{service.port}", "--tls-ca", f"{self.directory}/tls/fullchain.pem", "--token-file", path]

        def is_answered():
            return "+ALLOWED" in command("ask", f"CONSUME {self.user()}", *flags).stdout

        wait_until(is_answered, "an answer over TLS to a client with the token")
        self.assertIn("-NOAUTH", command("ask", "PING", *flags[:-2]).stdout)

    def check_backup(self):
        program, flag, script = self.compose["backup"]["entrypoint"]
        self.assertIn("$$file", script)
        url = self.inside(self.compose["backup"]["environment"]["DATABASE_URL"])
        given = environment(PATH=os.pathsep.join([postgres.programs(), os.environ["PATH"]]), DATABASE_URL=url)
        ran = run(program, flag, self.inside(script.replace("$$", "$")), env=given, cwd="/", **self.as_account(HEADROOM))
        self.assertEqual(ran.returncode, 0, ran.stderr)
        (dump,) = os.listdir(f"{self.directory}/backups")
        self.assertRegex(dump, r"^headroom-[0-9TZ-]+\.dump$")
        contents = run(f"{postgres.programs()}/pg_restore", "--list", f"{self.directory}/backups/{dump}")
        self.assertIn("TABLE DATA public message_usage", contents.stdout, contents.stderr)


@nightly("`ComposeFiles` reads what is in them")
class Page(Case):
    """The commands of docs/containers.md: those of Docker and Kubernetes name what exists, and what they run in a container is run here."""

    FLAGS = None

    @classmethod
    def setUpClass(cls):
        kubernetes.require_kubectl()
        super().setUpClass()
        cls.directory = processes.directory()
        cls.overlays = {}
        for name in ("try", "production"):
            objects = kubernetes.build(f"{kubernetes.DIRECTORY}/overlays/{name}")
            cls.overlays[objects.one("Namespace")["metadata"]["name"]] = objects
        cls.optional = kubernetes.with_everything()

    def setUp(self):
        super().setUp()
        self.made = set()
        """(namespace, name) of each Secret."""

    def commands(self):
        text = "".join(block.text for block in blocks(PAGE)).replace("\\\n", "")
        return text.splitlines()

    def test_every_block_is_of_commands(self):
        self.assertEqual({block.language for block in blocks(PAGE)}, {"sh"})
        for line in self.commands():
            self.assertRegex(line, r"^(docker build|docker compose|deploy/compose/make-secrets|kubectl|rm) ")

    def test_every_file_and_name_exists(self):
        for line in self.commands():
            words = shlex.split(line)
            with self.subTest(line=line):
                if words[:2] == ["docker", "build"]:
                    self.check_build(words)
                elif words[:2] == ["docker", "compose"]:
                    self.check_compose(words)
                elif words[0] == "kubectl":
                    self.check_kubectl(line, words)
                elif words[0] == "rm":
                    self.assertIn(f" > {words[1]}", "\n".join(self.commands()), "a command wrote it")
                else:
                    self.assertTrue(os.access(os.path.join(ROOT, words[0]), os.X_OK))

    def test_every_file_and_service_in_the_text_exists(self):
        text = re.sub(r"(?ms)^ *```.*?```$", "", read(PAGE))
        found = re.findall(r"`([^`\n]+)`", text)
        paths = {each for each in found if re.fullmatch(r"[\w.-]+(/[\w.-]+)+", each)}
        self.assertGreater(len(paths), 15)
        made = {f"deploy/compose/{name}" for name in MADE}
        for path in sorted(paths - made):
            folders = (ROOT, *(os.path.join(ROOT, "deploy/kubernetes", inner) for inner in ("", "components", "overlays/production")))
            if not path.endswith((".example/headroom", ".tar.gz")):
                self.assertTrue(any(os.path.exists(os.path.join(folder, path)) for folder in folders), path)
        inline = [shlex.split(each) for each in found if each.startswith("docker compose ") and "…" not in each]
        self.assertGreater(len(inline), 3)
        for words in inline:
            files = [words[index + 1] for index, word in enumerate(words) if word == "--file"] or ["docker-compose.yml"]
            services = {name for file in files for name in yaml.safe_load(read(file))["services"]}
            rest = words[2 + 2 * words.count("--file") :]
            if rest[0] == "exec":
                self.assertIn(rest[1], services)
                self.assertEqual(rest[2], "headroom")
            elif rest[0] == "kill":
                self.assertIn(rest[-1], services)
            else:
                self.assertEqual(rest[0], "up")

    def check_build(self, words):
        self.assertEqual(words[2:4], ["--tag", f"headroom:{version()}"])
        if "--target" in words:
            self.assertIn(f" AS {words[words.index('--target') + 1]}\n", read("Dockerfile"))
            self.assertEqual(words[words.index("--build-arg") + 1], f"VERSION={version()}")

    def check_compose(self, words):
        self.assertEqual(words[2], "--file")
        services = yaml.safe_load(read(words[3]))["services"]
        if words[4:6] == ["run", "--rm"]:
            self.assertIn(words[6], services)
            if words[7:]:
                self.assert_headroom_does(words[7:])
        else:
            self.assertEqual(words[4], "up")

    def assert_headroom_does(self, arguments):
        self.assertEqual(command(*arguments, database_url=self.database_url).returncode, 0, arguments)

    def check_kubectl(self, line, words):
        if words[1:3] == ["apply", "--kustomize"]:
            self.assertTrue(kubernetes.build(os.path.join(ROOT, words[3])))
            return
        objects = self.overlays[words[1].removeprefix("--namespace=")]
        if words[2:4] == ["create", "secret"]:
            return self.check_secret(line, objects)
        names = {f"deployment/{each['metadata']['name']}" for each in objects.of("Deployment")}
        self.assertTrue(names & set(words), names)
        self.assertIn(words[2], ("scale", "rollout", "exec"))
        if words[2] == "exec":
            self.assertEqual(words[4:6], ["--", "headroom"])
            if words[6] == "token":
                self.assertEqual(words[3], "deployment/headroom-operator", "the service's login makes no tokens")
                self.assert_headroom_does(words[6:11])
            else:
                # The database of this test has tokens from other commands.
                service = self.serve("--authentication", "off")
                self.assertIn("+ALLOWED", command(*words[6:], "--target", f"127.0.0.1:{service.port}").stdout)

    def check_secret(self, line, objects):
        """kubectl makes it, without a cluster, and it is as the example has it."""
        for name in ("tls.crt", "tls.key", "ca.crt", "token", "notifications-secret"):
            with open(f"{self.directory}/{name}", "w") as file:
                file.write("of a test")
        line = line.replace("kubectl", kubernetes.kubectl(), 1) + " --dry-run=client --output=yaml"
        made = run("bash", "-euc", line, cwd=self.directory, env=environment(ACCESS_KEY_ID="of", SECRET_ACCESS_KEY="a test"))
        self.assertEqual(made.returncode, 0, made.stderr)
        secret = yaml.safe_load(made.stdout)
        examples = {each["metadata"]["name"]: each for each in yaml.safe_load_all(read("deploy/kubernetes/secrets.example.yaml"))}
        example = examples[secret["metadata"]["name"]]
        self.assertEqual(set(secret["data"]), set(example["stringData"]))
        self.assertEqual(secret.get("type", "Opaque"), example.get("type", "Opaque"))
        self.assertIn(secret["metadata"]["name"], str([*objects, *self.optional]))
        self.made.add((secret["metadata"]["namespace"], secret["metadata"]["name"]))

    def test_every_secret_of_an_overlay_is_made(self):
        for line in self.commands():
            if " create secret " in line:
                words = shlex.split(line)
                self.check_secret(line, self.overlays[words[1].removeprefix("--namespace=")])
        examples = {each["metadata"]["name"] for each in yaml.safe_load_all(read("deploy/kubernetes/secrets.example.yaml"))}
        for namespace, objects in self.overlays.items():
            needed = {name for name in examples if re.search(rf"'{name}'", str([each["spec"] for each in objects if "spec" in each]))}
            # Service and ServiceMonitor have the name of no Secret. The component is off by default.
            made = {name for where, name in self.made if where == namespace} - {"headroom-notifications"}
            self.assertEqual(made, needed, namespace)

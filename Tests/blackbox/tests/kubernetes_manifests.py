"""deploy/kubernetes, without a cluster: Kustomize builds every overlay, the API's schemas take every object, all that one refers to exists,
and the service, PostgreSQL and the scripts do with it what the manifests expect."""

import os
import re
import shutil
import subprocess
import unittest
import urllib.parse

import yaml
from support import kubernetes, postgres, processes, settings
from support.case import LONG_TIMEOUTS, Case
from support.certificates import Authority
from support.kubernetes import DIRECTORY, containers, is_selected
from support.nightly import nightly
from support.postgres import Cluster
from support.printed import blocks, read
from support.reference import documented
from support.service import Service, command, environment, succeed
from support.tokens import token
from support.waiting import TIMEOUT_SECONDS, wait_until

OVERLAYS = ("try", "production", "managed-database")
GENERATED_SECRETS = {"headroom-database-app": {"username", "password"}, "headroom-database-ca": {"ca.crt"}}
"""Secrets that CloudNativePG makes for the cluster headroom-database, with the keys that are used."""
RECEIVERS = {"headroom-to-receiver": "HEADROOM_NOTIFICATIONS_URL", "headroom-to-collector": "HEADROOM_TRACING_URL"}
"""Policies that let the service connect to an address, and the settings that have it."""
DATABASE_NAMES = {"headroom-database-rw": "CloudNativePG makes it", "db.example": "a placeholder, for the operator's own"}
"""Hosts of databases for which there is no Service here."""


def documented_settings():
    """(name, default) from docs/reference/settings.md."""
    return {name: cells[0].strip("`") for name, cells in documented("setting").items()}


def walk(value, key=None):
    """(key, value) of each field of an object, however deep."""
    if isinstance(value, dict):
        for name, inner in value.items():
            yield name, inner
            yield from walk(inner, name)
    elif isinstance(value, list):
        for inner in value:
            yield from walk(inner, key)


class Manifests(unittest.TestCase):
    """Every overlay; and production with all components that are switched off in it, which is in no file."""

    @classmethod
    def setUpClass(cls):
        kubernetes.require_kubectl()
        cls.built = {name: kubernetes.build(f"{DIRECTORY}/overlays/{name}") for name in OVERLAYS}
        cls.built["with everything"] = kubernetes.with_everything()

    def test_there_is_nothing_that_is_not_tested(self):
        self.assertEqual(set(os.listdir(f"{DIRECTORY}/overlays")), set(OVERLAYS))
        text = "".join(read(f"deploy/kubernetes/overlays/{each}/kustomization.yaml") for each in OVERLAYS)
        self.assertEqual(set(re.findall(r"/components/([\w-]+)", text)), set(os.listdir(f"{DIRECTORY}/components")))
        self.assertLess(len(self.built["production"].settings()), len(self.built["with everything"].settings()))
        self.assertGreater(len(kubernetes.build(f"{DIRECTORY}/base")), 5)

    def test_every_object_is_valid_and_no_field_is_unknown(self):
        for name, objects in self.built.items():
            for release in kubernetes.RELEASES:
                self.assertEqual([problem for each in objects for problem in kubernetes.problems(each, release)], [], (name, release))

    def test_an_unknown_field_is_found(self):
        for kind in ("Deployment", "Cluster", "ServiceMonitor", "NetworkPolicy"):
            found = dict(self.built["production"].of(kind)[0])
            found["spec"] = {**found["spec"], "repilcas": 2}
            self.assertTrue(kubernetes.problems(found, kubernetes.RELEASES[0]), kind)

    def test_names_are_unique_and_every_object_is_in_the_namespace_that_the_overlay_makes(self):
        for name, objects in self.built.items():
            labels = [(each["kind"], each["metadata"]["name"]) for each in objects]
            self.assertEqual(len(labels), len(set(labels)), name)
            namespace = objects.one("Namespace")["metadata"]
            self.assertEqual(namespace["labels"]["pod-security.kubernetes.io/enforce"], "restricted")
            self.assertEqual({each["metadata"].get("namespace", namespace["name"]) for each in objects}, {namespace["name"]}, name)

    # References

    def referred(self, objects, kind):
        """(name, keys) of each Secret or ConfigMap that something refers to."""
        found = []
        for key, value in (field for each in objects for field in walk(each)):
            if not isinstance(value, (dict, list)):
                continue
            if kind == "Secret" and key in ("secretKeyRef", "credentials", "accessKeyId", "secretAccessKey"):
                found.append((value["name"], {value["key"]}))
            elif kind == "Secret" and key == "secret" and "secretName" in value:
                found.append((value["secretName"], {item["key"] for item in value.get("items", [])}))
            elif kind == "Secret" and key == "secret":
                found.append((value["name"], {value["key"]}))
            elif kind == "Secret" and key == "passwordSecret":
                found.append((value["name"], {"username", "password"}))
            elif kind == "ConfigMap" and key in ("configMapRef", "configMap", "configMapKeyRef"):
                found.append((value["name"], set()))
            elif kind == "ConfigMap" and key == "configMapRefs":
                found += [(reference["name"], {reference["key"]}) for reference in value]
        return found

    def examples(self):
        return {each["metadata"]["name"]: each for each in yaml.safe_load_all(read("deploy/kubernetes/secrets.example.yaml"))}

    def test_every_secret_is_in_the_example_or_made_by_an_operator(self):
        keys = {name: set(each["stringData"]) for name, each in self.examples().items()} | GENERATED_SECRETS
        used = set()
        for name, objects in self.built.items():
            self.assertEqual(objects.of("Secret"), [], "no manifest has a secret")
            for secret, wanted in self.referred(objects, "Secret"):
                self.assertIn(secret, keys, name)
                self.assertLessEqual(wanted, keys[secret], (name, secret))
                used.add(secret)
        self.assertEqual(used, set(keys), "each is used")

    def test_the_example_has_no_secret(self):
        for name, example in self.examples().items():
            self.assertEqual(kubernetes.problems(example, kubernetes.RELEASES[0]), [])
            values = {value for key, value in example["stringData"].items() if key != "username"}
            self.assertEqual(values, {"REPLACE_ME"}, name)
        role = self.built["production"].one("Cluster")["spec"]["managed"]["roles"][0]
        self.assertEqual(role["name"], self.examples()[role["passwordSecret"]["name"]]["stringData"]["username"])
        self.assertEqual(role["inRoles"], ["headroom_service"])

    def test_every_config_map_account_and_object_store_exists(self):
        for name, objects in self.built.items():
            maps = {each["metadata"]["name"]: each["data"] for each in objects.of("ConfigMap")}
            referred = self.referred(objects, "ConfigMap")
            self.assertEqual({reference for reference, _ in referred}, set(maps), name)
            for reference, keys in referred:
                self.assertLessEqual(keys, set(maps[reference]), name)
            accounts = {each["metadata"]["name"] for each in objects.of("ServiceAccount")}
            for pod, template in objects.pods():
                self.assertIn(template["spec"].get("serviceAccountName"), {*accounts, None}, pod)
            for cluster in objects.of("Cluster"):
                stores = [plugin["parameters"]["barmanObjectName"] for plugin in cluster["spec"]["plugins"]]
                self.assertEqual(stores, [each["metadata"]["name"] for each in objects.of("ObjectStore")])
                for backup in objects.of("ScheduledBackup"):
                    self.assertEqual(backup["spec"]["cluster"]["name"], cluster["metadata"]["name"])
                    self.assertEqual(backup["spec"]["pluginConfiguration"]["name"], cluster["spec"]["plugins"][0]["name"])

    def test_every_file_that_a_setting_names_is_mounted(self):
        for name, objects in self.built.items():
            found = objects.settings()
            paths = {value for value in found.values() if value.startswith("/etc/headroom/")}
            paths |= set(re.findall(r"=(/etc/headroom/\S+)", found["DATABASE_URL"]))
            mounts = {"headroom": paths, "migrate": set(re.findall(r"=(/etc/headroom/\S+)", found["DATABASE_URL"]))}
            template = objects.one("Deployment", "headroom")["spec"]["template"]
            volumes = {volume["name"]: volume for volume in template["spec"].get("volumes", [])}
            for container, wanted in mounts.items():
                mounted = containers(template)[container].get("volumeMounts", [])
                directories = {mount["mountPath"]: volumes[mount["name"]] for mount in mounted}
                for path in wanted:
                    directory, key = path.rsplit("/", 1)
                    self.assertIn(directory, directories, (name, container, path))
                    secret = directories[directory]["secret"]
                    keys = {**{name: set(each["stringData"]) for name, each in self.examples().items()}, **GENERATED_SECRETS}
                    self.assertIn(key, keys[secret["secretName"]])
                    # Read by the pod's group, written by nobody.
                    self.assertEqual(secret["defaultMode"], 0o440)
            if "HEADROOM_NOTIFICATIONS_SECRET_FILE" in found:
                # `headroom notifications test` reads it there.
                operator = containers(objects.one("Deployment", "headroom-operator")["spec"]["template"])["headroom"]
                self.assertIn("/etc/headroom/notifications", {mount["mountPath"] for mount in operator["volumeMounts"]})
            for _, pod in objects.pods():
                names = {volume["name"] for volume in pod["spec"].get("volumes", [])}
                names |= {claim["metadata"]["name"] for each in objects.of("StatefulSet") for claim in each["spec"]["volumeClaimTemplates"]}
                for container in containers(pod).values():
                    self.assertLessEqual({mount["name"] for mount in container.get("volumeMounts", [])}, names, name)

    def test_the_database_that_is_named_exists(self):
        for name, objects in self.built.items():
            host = re.match(r"host=(\S+) port=5432 dbname=headroom\b", objects.settings()["DATABASE_URL"])[1]
            self.assertNotIn("password", objects.settings()["DATABASE_URL"])
            self.assertIn(host, {*DATABASE_NAMES, *(each["metadata"]["name"] for each in objects.of("Service"))}, name)
            for cluster in objects.of("Cluster"):
                self.assertEqual(host, cluster["metadata"]["name"] + "-rw")
                self.assertEqual(cluster["spec"]["bootstrap"]["initdb"]["database"], "headroom")

    # Selectors

    def test_every_selector_finds_its_pods_and_no_others(self):
        for name, objects in self.built.items():
            pods = {pod: template["metadata"]["labels"] for pod, template in objects.pods()}
            pods |= {each["metadata"]["name"]: {"cnpg.io/cluster": each["metadata"]["name"]} for each in objects.of("Cluster")}

            def chosen(selector, pods=pods):
                return {pod for pod, labels in pods.items() if is_selected(labels, selector)}

            for each in objects:
                label = f"{name}: {each['kind']} {each['metadata']['name']}"
                if each["kind"] in ("Deployment", "StatefulSet"):
                    self.assertEqual(chosen(each["spec"]["selector"]), {each["metadata"]["name"]}, label)
                    for spread in each["spec"]["template"]["spec"].get("topologySpreadConstraints", []):
                        self.assertEqual(chosen(spread["labelSelector"]), {each["metadata"]["name"]}, label)
                elif each["kind"] in ("Service", "PodDisruptionBudget"):
                    self.assertEqual(chosen(each["spec"]["selector"]), {each["metadata"]["name"]}, label)
                elif each["kind"] == "NetworkPolicy":
                    self.assertTrue(chosen(each["spec"]["podSelector"]), label)
                    for direction, end in (("ingress", "from"), ("egress", "to")):
                        for peer in (peer for rule in each["spec"].get(direction, []) for peer in rule[end]):
                            if "namespaceSelector" not in peer and "podSelector" in peer:
                                self.assertTrue(chosen(peer["podSelector"]), label)
                elif each["kind"] == "ServiceMonitor":
                    services = {found["metadata"]["name"]: found for found in objects.of("Service")}
                    labels = {service: found["metadata"].get("labels", {}) for service, found in services.items()}
                    self.assertEqual(chosen(each["spec"]["selector"], labels), {"headroom"}, label)
                    ports = {port["name"] for port in services["headroom"]["spec"]["ports"]}
                    self.assertLessEqual({endpoint["port"] for endpoint in each["spec"]["endpoints"]}, ports, label)

    def test_every_port_is_one_of_the_containers(self):
        for name, objects in self.built.items():
            ports = {}
            for pod, template in objects.pods():
                opened = [port for container in containers(template).values() for port in container.get("ports", [])]
                ports[pod] = {port["name"]: port["containerPort"] for port in opened}
            self.assertEqual(ports["headroom"], {"line": 6747, "http": 6748})
            addresses = {key: objects.settings()[f"HEADROOM_{key.upper()}"] for key in ("listen", "http")}
            self.assertEqual(addresses, {"listen": "0.0.0.0:6747", "http": "0.0.0.0:6748"})
            for service in objects.of("Service"):
                for port in service["spec"]["ports"]:
                    self.assertEqual(ports[service["metadata"]["name"]][port["targetPort"]], port["port"], name)
            for policy in objects.of("NetworkPolicy"):
                for rule in policy["spec"].get("ingress", []):
                    for port in rule["ports"]:
                        self.assertIn(port["port"], {"line", "http", "postgresql", 5432, 8000}, name)
            for probe in ("startupProbe", "readinessProbe", "livenessProbe"):
                self.assertEqual(objects.service_container()[probe]["httpGet"]["port"], "http")

    def test_the_network_lets_through_what_is_needed_and_nothing_else(self):
        for name, objects in self.built.items():
            policies = {each["metadata"]["name"]: each["spec"] for each in objects.of("NetworkPolicy")}
            self.assertEqual(policies["headroom"]["policyTypes"], ["Ingress", "Egress"])
            peers = [peer for rule in policies["headroom"]["ingress"] for peer in rule["from"]]
            self.assertEqual([peer["podSelector"]["matchLabels"] for peer in peers], [{"headroom-client": "true"}])
            self.assertEqual([port["port"] for rule in policies["headroom"]["ingress"] for port in rule["ports"]], ["line", "http"])
            self.assertEqual([port["port"] for rule in policies["headroom"]["egress"] for port in rule["ports"]], [53, 53])
            to_database = policies["headroom-to-database"]
            self.assertEqual(to_database["policyTypes"], ["Egress"], name)
            self.assertEqual([port["port"] for rule in to_database["egress"] for port in rule["ports"]], [5432], name)
            # Where else the service connects to, by the settings that say so.
            others = {each for each in policies if each.startswith("headroom-to-")} - {"headroom-to-database"}
            urls = {policy: objects.settings()[setting] for policy, setting in RECEIVERS.items() if setting in objects.settings()}
            self.assertEqual(others, set(urls), name)
            for policy, url in urls.items():
                address = urllib.parse.urlsplit(url)
                ports = [port["port"] for rule in policies[policy]["egress"] for port in rule["ports"]]
                self.assertEqual(ports, [address.port or {"https": 443}[address.scheme]], name)
                self.assertEqual(policies[policy]["policyTypes"], ["Egress"], name)
            for policy in policies.values():
                for direction, end in (("ingress", "from"), ("egress", "to")):
                    for rule in policy.get(direction, []):
                        # A rule without ports, or without peers, allows all of them.
                        self.assertTrue(rule["ports"] and rule[end])

    # Pods

    def test_every_container_has_no_right_that_it_does_not_need(self):
        for name, objects in self.built.items():
            for pod, template in objects.pods():
                spec, label = template["spec"], (name, pod)
                self.assertIs(spec["automountServiceAccountToken"], False, label)
                self.assertIs(spec["enableServiceLinks"], False, label)
                of_pod = spec["securityContext"]
                self.assertIs(of_pod["runAsNonRoot"], True, label)
                self.assertEqual(of_pod["seccompProfile"], {"type": "RuntimeDefault"}, label)
                account = 999 if pod == "headroom-database" else 10001
                self.assertEqual({of_pod[key] for key in ("runAsUser", "runAsGroup", "fsGroup")}, {account}, label)
                for container in containers(template).values():
                    self.assertEqual(
                        container["securityContext"],
                        {"allowPrivilegeEscalation": False, "readOnlyRootFilesystem": True, "capabilities": {"drop": ["ALL"]}},
                        (*label, container["name"]),
                    )
                    self.assertLessEqual({"cpu", "memory"}, set(container["resources"]["requests"]))
                    self.assertEqual(set(container["resources"]["limits"]), {"memory"})
                for key, _ in walk(spec):
                    self.assertNotIn(key, ("hostPath", "hostNetwork", "hostPID", "hostIPC", "hostPort", "privileged"), label)

    def test_every_container_of_the_service_has_the_version_which_is_in_one_place(self):
        version = yaml.safe_load(read("deploy/kubernetes/components/release/kustomization.yaml"))["images"][0]["newTag"]
        for name, objects in self.built.items():
            images = {container["image"] for _, template in objects.pods() for container in containers(template).values()}
            others = {image for image in images if not image.startswith("headroom")}
            self.assertEqual(images - others, {f"headroom:{version}"}, name)
            for image in others:
                self.assertRegex(image, r"^postgres:17-bookworm@sha256:[0-9a-f]{64}$")
        for directory, _, files in os.walk(DIRECTORY):
            for file in files:
                if version in read(f"{directory}/{file}"):
                    self.assertEqual(directory, f"{DIRECTORY}/components/release")

    def test_an_overlay_takes_the_image_from_the_registry_that_is_named(self):
        for name in OVERLAYS:
            copy = processes.directory() + "/kubernetes"
            shutil.copytree(DIRECTORY, copy)
            text = read(f"deploy/kubernetes/overlays/{name}/kustomization.yaml")
            lines, found = re.subn(r"(?m)^# (images:| +- name: headroom| +newName: )", r"\1", text)
            self.assertEqual(found, 3, name)
            with open(f"{copy}/overlays/{name}/kustomization.yaml", "w") as file:
                file.write(lines)
            objects = kubernetes.build(f"{copy}/overlays/{name}")
            for pod, template in objects.pods():
                for container in containers(template).values():
                    if pod != "headroom-database":
                        self.assertEqual(container["image"], "registry.example/" + self.built[name].service_container()["image"], pod)

    def test_a_pod_has_the_time_to_drain_and_another_one_is_ready_before(self):
        defaults = documented_settings()
        snippet = re.search(r"^```yaml\nreadinessProbe: (.*)\n", read("docs/instances.md"), re.M)[1]
        for name, objects in self.built.items():
            deployment = objects.one("Deployment", "headroom")["spec"]
            pod, found = deployment["template"]["spec"], objects.settings()
            delay = int(found["HEADROOM_DRAIN_DELAY_MS"])
            drain = int(found.get("HEADROOM_DRAIN_TIMEOUT_MS", defaults["drain-timeout-ms"]))
            # docs/instances.md: what stops the service by force must wait longer.
            self.assertGreater(pod["terminationGracePeriodSeconds"] * 1000, delay + drain + 2000, name)
            self.assertGreaterEqual(delay, 5000)
            self.assertEqual(deployment["strategy"]["rollingUpdate"], {"maxSurge": 1, "maxUnavailable": 0})
            self.assertGreater(deployment["replicas"], objects.one("PodDisruptionBudget")["spec"]["maxUnavailable"])
            probe = objects.service_container()["readinessProbe"]
            documented = yaml.safe_load(snippet)
            self.assertEqual((probe["httpGet"]["path"], probe["periodSeconds"], probe["failureThreshold"]),
                             (documented["httpGet"]["path"], documented["periodSeconds"], documented["failureThreshold"]))  # fmt: skip
            for kind in ("startupProbe", "readinessProbe", "livenessProbe"):
                each = objects.service_container()[kind]
                self.assertLessEqual(each["timeoutSeconds"], each["periodSeconds"], kind)
                self.assertEqual(each["httpGet"].get("scheme", "HTTP"), "HTTPS" if "HEADROOM_TLS_CERTIFICATE" in found else "HTTP", name)

    def test_no_two_instances_are_on_one_node_in_production(self):
        for name, objects in self.built.items():
            by_zone, by_node = objects.one("Deployment", "headroom")["spec"]["template"]["spec"]["topologySpreadConstraints"]
            self.assertEqual((by_zone["topologyKey"], by_zone["whenUnsatisfiable"]), ("topology.kubernetes.io/zone", "ScheduleAnyway"))
            wanted = "ScheduleAnyway" if name == "try" else "DoNotSchedule"
            self.assertEqual((by_node["topologyKey"], by_node["whenUnsatisfiable"]), ("kubernetes.io/hostname", wanted), name)

    def test_every_setting_exists(self):
        for name, objects in self.built.items():
            given = {*objects.settings()}
            for _, template in objects.pods():
                given |= {each["name"] for container in containers(template).values() for each in container.get("env", [])}
            for each in given:
                if each.startswith("HEADROOM_"):
                    self.assertIn(each.removeprefix("HEADROOM_").lower().replace("_", "-"), documented_settings(), name)
                else:
                    self.assertRegex(each, "^(DATABASE_URL|PGUSER|PGPASSWORD|PGDATA|POSTGRES_[A-Z_]+|BACKEND_(USER|PASSWORD))$")

    # What is elsewhere, too

    def test_alerts_are_those_of_prometheus(self):
        rules = yaml.safe_load(read("deploy/prometheus/rules.yml"))
        self.assertEqual(self.built["production"].one("PrometheusRule")["spec"]["groups"], rules["groups"])

    def test_the_roles_are_those_that_the_command_prints(self):
        printed = command("roles").stdout
        self.assertIn("create role", printed)
        self.assertEqual(self.built["production"].one("ConfigMap", "headroom-database-roles")["data"]["roles.sql"], printed)

    def test_commits_wait_for_a_standby(self):
        spec = self.built["production"].one("Cluster")["spec"]
        self.assertGreaterEqual(spec["instances"], 3)
        synchronous = {"method": "any", "number": 1, "dataDurability": "required", "failoverQuorum": True}
        self.assertEqual(spec["postgresql"]["synchronous"], synchronous)
        parameters = spec["postgresql"]["parameters"]
        memory = {name: int(parameters[name].removesuffix("GB")) for name in ("shared_buffers", "max_wal_size")}
        # docs/faq.md says so.
        self.assertEqual(memory["max_wal_size"], 6 * memory["shared_buffers"])
        self.assertGreater(int(spec["walStorage"]["size"].removesuffix("Gi")), memory["max_wal_size"])


@nightly("`Manifests` reads every setting")
class SettingsCase(Case):
    """The real service, with the settings that the manifests give it."""

    FLAGS = None

    @classmethod
    def setUpClass(cls):
        kubernetes.require_kubectl()
        super().setUpClass()
        cls.authority = Authority()

    def serve_as(self, overlay):
        """An instance with the overlay's settings, except for the database, the ports' numbers, and where the certificate is."""
        objects = kubernetes.build(f"{DIRECTORY}/overlays/{overlay}")
        certificate, key = self.authority.server()
        given = {name: value for name, value in objects.settings().items() if name != "DATABASE_URL"}
        given = {name: re.sub(r":674[78]$", ":0", value) for name, value in given.items()}
        if "HEADROOM_TLS_CERTIFICATE" in given:
            given |= {"HEADROOM_TLS_CERTIFICATE": certificate, "HEADROOM_TLS_KEY": key}
        # In place of the port that the test's launcher gives it.
        listen = given.pop("HEADROOM_LISTEN")
        service = self.serve("--listen", listen, wait=False, env=given)
        ready = wait_until(lambda: re.search(r"^ready listen=0\.0\.0\.0:(\d+) http=0\.0\.0\.0:(\d+)\n", service.output()), service.log)
        service.port, service.http_port = int(ready[1]), int(ready[2])
        if "HEADROOM_TLS_CERTIFICATE" in given:
            service.tls = self.authority.client_context()
        # Nothing waits for the end of the delay.
        self.addCleanup(service.kill)
        return objects, service

    def assert_probes_answer(self, objects, service):
        for kind in ("startupProbe", "readinessProbe", "livenessProbe"):
            probe = objects.service_container()[kind]["httpGet"]
            self.assertEqual(probe.get("scheme", "HTTP"), "HTTPS" if service.tls else "HTTP")
            self.assertEqual(service.http("GET", probe["path"]).status, 200, kind)


class ToTry(SettingsCase):
    def test_to_try_it_no_token_is_needed(self):
        objects, service = self.serve_as("try")
        self.assert_probes_answer(objects, service)
        self.assertIn("+ALLOWED", service.send_command(f"CONSUME {self.user()}"))


class InProduction(SettingsCase):
    def test_in_production_tls_and_a_token_are_needed_and_prometheus_has_both(self):
        for overlay in ("production", "managed-database"):
            objects, service = self.serve_as(overlay)
            self.assert_probes_answer(objects, service)
            self.assertIn("-NOAUTH", service.send_command("PING"))
            endpoint = objects.one("ServiceMonitor")["spec"]["endpoints"][0]
            self.assertEqual((endpoint["scheme"], endpoint["authorization"]["type"]), ("https", "Bearer"))
            self.assertEqual(service.http("GET", endpoint["path"]).status, 401)
            _, secret = token(self, "prometheus", "dashboard")
            headers = {"Authorization": f"Bearer {secret}"}
            wait_until(lambda: service.http("GET", endpoint["path"], headers=headers).status == 200, "the token is read")  # noqa: B023


class WithNotifications(SettingsCase):
    def test_the_service_takes_their_settings_and_the_secret_that_a_page_makes(self):
        found = kubernetes.with_everything().settings()
        (line,) = (line for block in blocks("docs/notifications.md") for line in block.lines if "whsec_" in line and "openssl" in line)
        directory = processes.directory()
        subprocess.run(["bash", "-euc", line], check=True, timeout=TIMEOUT_SECONDS, cwd=directory)
        names = {name: value for name, value in found.items() if name.startswith("HEADROOM_NOTIFICATIONS_")}
        self.assertEqual(set(names), {"HEADROOM_NOTIFICATIONS_URL", "HEADROOM_NOTIFICATIONS_SECRET_FILE"})
        service = self.serve(env={**names, "HEADROOM_NOTIFICATIONS_SECRET_FILE": directory + "/notifications-secret"})
        self.assertIn("+ALLOWED", service.send_command(f"CONSUME {self.user()}"))
        self.assertIn("headroom_notifications_pending 0", service.http("GET", "/metrics").text)


@nightly("`Manifests` reads every object")
class Bootstrap(Case):
    """A new PostgreSQL becomes what the service needs, by what the manifests run in it."""

    FLAGS = None

    @classmethod
    def setUpClass(cls):
        kubernetes.require_kubectl()
        super().setUpClass()
        cls.production = kubernetes.build(f"{DIRECTORY}/overlays/production")
        cls.directory = processes.directory()
        path = os.pathsep.join([cls.directory, os.path.dirname(settings.binary), postgres.programs(), os.environ["PATH"]])
        cls.environment = environment(PATH=path)
        cls.containers = containers(cls.production.one("Deployment", "headroom")["spec"]["template"])

    def new_server(self):
        server = Cluster(has_roles=False)
        self.addCleanup(server.end)
        return server

    def program(self, name, text):
        with open(f"{self.directory}/{name}", "w") as file:
            file.write(f"#!/bin/sh\n{text}\n")
        os.chmod(f"{self.directory}/{name}", 0o755)
        self.addCleanup(os.remove, f"{self.directory}/{name}")

    def run_migrate(self, url, **more):
        """The command of the init container."""
        return processes.completed(self.containers["migrate"]["command"], env={**self.environment, "DATABASE_URL": url, **more}, cwd="/")

    def assert_counts(self, url, **more):
        service = Service(database_url=url, as_owner=True, env={**LONG_TIMEOUTS, **more})
        self.addCleanup(service.stop)
        self.assertIn("+ALLOWED", service.send_command(f"CONSUME {self.user()}"))
        self.assertNotIn("more rights than it needs", service.log())
        refused = command("token", "create", "backend", "--scope", "chat", database_url=url, env=more)
        self.assertNotEqual(refused.returncode, 0, "the service's login makes no tokens")

    def test_with_cloudnativepg_the_owner_migrates_without_creating_roles_and_makes_tokens(self):
        server = self.new_server()
        spec = self.production.one("Cluster")["spec"]
        initdb, role = spec["bootstrap"]["initdb"], spec["managed"]["roles"][0]
        server.sql(f"create role {initdb['owner']} login", f"create database {initdb['database']} owner {initdb['owner']}")
        reference = initdb["postInitApplicationSQLRefs"]["configMapRefs"][0]
        # The operator sends the text in one piece, as the superuser.
        server.sql(self.production.one("ConfigMap", reference["name"])["data"][reference["key"]], database=initdb["database"])
        server.sql(f"create role {role['name']} login in role {', '.join(role['inRoles'])}")
        owner, backend = (server.url("headroom").replace("user=postgres", f"user={name}") for name in (initdb["owner"], role["name"]))
        ran = self.run_migrate(owner)
        self.assertEqual(ran.returncode, 0, ran.stderr)
        self.assertEqual(self.run_migrate(owner).returncode, 0, "again, with nothing to do")
        self.assert_counts(backend)
        succeed("token", "create", "backend", "--scope", "chat", database_url=owner)

    def test_one_postgresql_has_the_login_of_the_service(self):
        server = self.new_server()
        server.sql("create role headroom superuser login", "create database headroom owner headroom")
        script = kubernetes.build(f"{DIRECTORY}/overlays/try").one("ConfigMap", "headroom-database-logins")["data"]["logins.sh"]
        given = {"POSTGRES_USER": "headroom", "POSTGRES_DB": "headroom", "BACKEND_USER": "backend", "PGHOST": server.home}
        # As the image does with a file that is not executable: it reads it into its own shell.
        password = "it's; a \"password\" \\"
        ran = processes.completed(
            ["bash", "-Eeo", "pipefail", "-c", script], env={**self.environment, **given, "BACKEND_PASSWORD": password}, cwd="/"
        )
        self.assertEqual((ran.returncode, ran.stdout, ran.stderr), (0, "", ""))
        with open(f"{server.data}/pg_hba.conf", "w") as file:
            file.write("local all backend scram-sha-256\nlocal all all trust\n")
        server.sql("select pg_reload_conf()")
        backend = server.url("headroom").replace("user=postgres", "user=backend")
        for given, works in ((password, True), ("password", False)):
            ran = subprocess.run([*postgres.psql(backend), "-c", "select 1"], env=environment(PGPASSWORD=given), capture_output=True)
            self.assertEqual(ran.returncode == 0, works, ran.stderr)
        self.assertEqual(self.run_migrate(server.url("headroom").replace("postgres", "headroom")).returncode, 0)
        self.assert_counts(backend, PGPASSWORD=password)

    def test_migrating_waits_for_a_database_that_is_away_and_reports_anything_else(self):
        self.program("headroom", 'echo "$@" >> "$CALLS"; [ "$(wc -l < "$CALLS")" -ge 3 ] && exit "$LAST"; exit 69')
        self.program("sleep", "")
        for last, status in (("0", 0), ("1", 1), ("64", 1)):
            calls = f"{self.directory}/calls-{last}"
            self.assertEqual(self.run_migrate("", CALLS=calls, LAST=last).returncode, status, last)
            self.assertEqual(read(calls), "migrate\n" * 3)
        # 69 is what the command says of a database that is away.
        self.assertEqual(command("migrate", database_url="host=127.0.0.1 port=1").returncode, 69)

    def test_a_new_certificate_is_read_once(self):
        authority = Authority()
        certificate, key = authority.server()
        service = self.serve("--tls-certificate", certificate, "--tls-key", key)
        container = self.containers["certificate-reload"]
        self.assertEqual(container["command"][0], "sh")
        script = self.production.one("ConfigMap", "headroom-certificate-reload")["data"][os.path.basename(container["command"][1])]
        rounds = self.directory + "/rounds"
        # The service answers at a port of its own, and is not the only one of its name here.
        ping = f'exec "{settings.binary}" ping 127.0.0.1:{service.port}'
        self.program("headroom", f'[ "$*" = "ping 127.0.0.1:6747" ] && [ -e {self.directory}/answers ] && {ping}')
        self.program("pidof", f'[ "$1" = headroom ] && echo {service.process.pid}')
        self.program("sleep", f'[ "$1" = 60 ] && echo >> {rounds} && exec /bin/sleep 0.02')
        files = {"HEADROOM_TLS_CERTIFICATE": certificate, "HEADROOM_TLS_KEY": key}
        self.assertEqual(set(files), {each["name"] for each in container["env"]})
        running = processes.start(["sh", "-c", script], env={**self.environment, **files}, log=self.directory + "/reload.log")
        self.addCleanup(processes.stop, running)

        def reloads():
            return service.log().count("TLS certificate reloaded")

        def wait_for_rounds():
            before = os.path.getsize(rounds)
            wait_until(lambda: os.path.getsize(rounds) > before + 3, "three more rounds")

        wait_until(lambda: os.path.exists(rounds), "the first round")
        wait_for_rounds()
        self.assertEqual(reloads(), 0, "no signal to a service that does not answer")
        open(self.directory + "/answers", "w").close()
        wait_until(lambda: reloads() == 1, "once after its own start")
        wait_for_rounds()
        self.assertEqual(reloads(), 1)
        new_certificate, new_key = authority.server(file="renewed", days=60)
        # If it finds the key alone replaced, the service refuses it, and is told again.
        os.rename(new_key, key)
        os.rename(new_certificate, certificate)
        wait_until(lambda: reloads() == 2, "the new certificate is read")
        wait_for_rounds()
        self.assertEqual(reloads(), 2)
        self.assertTrue(service.is_running)

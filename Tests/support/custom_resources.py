"""Schemas of the custom resources in deploy/kubernetes: the fields that are used, with the types and values that the API references of
CloudNativePG 1.30, its Barman Cloud plugin 0.14 and the Prometheus Operator 0.93 have. Any other field is an error."""

TEXT = {"type": "string", "minLength": 1}
NAME = {"type": "string", "pattern": r"^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$"}
QUANTITY = {"type": "string", "pattern": r"^[0-9]+(\.[0-9]+)?(m|k|Ki|M|Mi|G|Gi|T|Ti)?$"}
DURATION = {"type": "string", "pattern": r"^([0-9]+(ms|s|m|h|d|w|y))+$"}
TEXTS = {"type": "object", "additionalProperties": {"type": "string"}}
BOOLEAN = {"type": "boolean"}


def fields(*required, **optional):
    """An object with these fields; `required` names those that must be there."""
    return {"type": "object", "properties": optional, "required": list(required), "additionalProperties": False}


def several(item):
    return {"type": "array", "items": item, "minItems": 1}


def one_of(*values):
    return {"enum": list(values)}


def custom(version, kind, spec):
    metadata = fields("name", name=NAME, namespace=NAME, labels=TEXTS, annotations=TEXTS)
    names = {"apiVersion": {"const": version}, "kind": {"const": kind}}
    return {(version, kind): fields("apiVersion", "kind", "metadata", "spec", metadata=metadata, spec=spec, **names)}


KEY = fields("name", "key", name=NAME, key=TEXT)
SELECTOR = fields(matchLabels=TEXTS)
REFERENCE = fields("name", name=NAME)
RESOURCES = fields(requests=fields(cpu=QUANTITY, memory=QUANTITY), limits=fields(cpu=QUANTITY, memory=QUANTITY))
STORAGE = fields(size=QUANTITY, storageClass=NAME)

CLUSTER = fields(
    "instances", "storage",
    instances={"type": "integer", "minimum": 1},
    imageName=TEXT,
    primaryUpdateStrategy=one_of("unsupervised", "supervised"),
    primaryUpdateMethod=one_of("switchover", "restart"),
    bootstrap=fields(
        initdb=fields(
            database=TEXT, owner=TEXT, dataChecksums=BOOLEAN, secret=REFERENCE,
            postInitApplicationSQLRefs=fields(configMapRefs=several(KEY), secretRefs=several(KEY)),
        )
    ),
    managed=fields(
        roles=several(
            fields(
                "name", name=TEXT, ensure=one_of("present", "absent"), login=BOOLEAN, inRoles=several(TEXT), passwordSecret=REFERENCE,
                createrole=BOOLEAN, superuser=BOOLEAN,
            )
        )
    ),
    postgresql=fields(
        parameters=TEXTS,
        synchronous=fields(
            "method", "number", method=one_of("any", "first"), number={"type": "integer", "minimum": 1},
            dataDurability=one_of("required", "preferred"), failoverQuorum=BOOLEAN,
        ),
    ),
    affinity=fields(enablePodAntiAffinity=BOOLEAN, podAntiAffinityType=one_of("preferred", "required"), topologyKey=TEXT),
    plugins=several(fields("name", name=TEXT, isWALArchiver=BOOLEAN, enabled=BOOLEAN, parameters=TEXTS)),
    resources=RESOURCES, storage=STORAGE, walStorage=STORAGE,
)  # fmt: skip

SCHEDULED_BACKUP = fields(
    "cluster", "schedule",
    cluster=REFERENCE,
    # Six fields, the first of which is the second.
    schedule={"type": "string", "pattern": r"^\S+( \S+){5}$"},
    immediate=BOOLEAN,
    backupOwnerReference=one_of("none", "self", "cluster"),
    method=one_of("barmanObjectStore", "volumeSnapshot", "plugin"),
    pluginConfiguration=fields("name", name=TEXT, parameters=TEXTS),
)  # fmt: skip

COMPRESSION = fields(compression=one_of("bzip2", "gzip", "snappy"))
OBJECT_STORE = fields(
    "configuration",
    retentionPolicy={"type": "string", "pattern": r"^[1-9][0-9]*[dwm]$"},
    configuration=fields(
        "destinationPath", destinationPath=TEXT, endpointURL=TEXT, wal=COMPRESSION, data=COMPRESSION,
        s3Credentials=fields(accessKeyId=KEY, secretAccessKey=KEY),
    ),
)  # fmt: skip

SERVICE_MONITOR = fields(
    "selector", "endpoints",
    selector=SELECTOR,
    endpoints=several(
        fields(
            port=TEXT, path=TEXT, interval=DURATION, scheme=one_of("http", "https"),
            tlsConfig=fields(serverName=TEXT, ca=fields(secret=KEY, configMap=KEY)),
            authorization=fields(type=TEXT, credentials=KEY),
        )
    ),
)  # fmt: skip

RULE = fields("alert", "expr", alert=TEXT, expr=TEXT, labels=TEXTS, annotations=TEXTS, **{"for": DURATION})
PROMETHEUS_RULE = fields("groups", groups=several(fields("name", "rules", name=TEXT, rules=several(RULE), interval=DURATION)))

SCHEMAS = {
    **custom("postgresql.cnpg.io/v1", "Cluster", CLUSTER),
    **custom("postgresql.cnpg.io/v1", "ScheduledBackup", SCHEDULED_BACKUP),
    **custom("barmancloud.cnpg.io/v1", "ObjectStore", OBJECT_STORE),
    **custom("monitoring.coreos.com/v1", "ServiceMonitor", SERVICE_MONITOR),
    **custom("monitoring.coreos.com/v1", "PrometheusRule", PROMETHEUS_RULE),
}
"""By version and kind."""

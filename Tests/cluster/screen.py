"""What script/cluster prints: where everything is, what to try, and each second what happens."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import Any

from instance import Instance
from load import LEAST_GAP, LiveRecorder
from support.patroni import SCOPE, PatroniCluster

CLEAR, HOME, TO_END_OF_LINE = "\x1b[2J\x1b[H", "\x1b[H", "\x1b[K"


@dataclass
class Moment:
    """What a second has shown."""

    members: list[dict[str, Any]]
    leader: str
    timeline: int
    allowed: list[int]
    seconds: float
    events: list[str] = field(default_factory=list)


def gap(seconds: float) -> str:
    return f"{seconds:.1f} s" if seconds >= LEAST_GAP else "-"


def errors(recorder: LiveRecorder) -> str:
    return " ".join(f"{code}={count}" for code, count in sorted(recorder.errors.items())) or "none"


def addresses(cluster: PatroniCluster, instances: list[Instance], database: str, binary: str) -> list[str]:
    lines = [f"directory   {cluster.home}", f"database    psql '{cluster.url(database)}'"]
    for instance in instances:
        assert instance.service is not None
        lines.append(f"instance {instance.index}  line protocol 127.0.0.1:{instance.port}, dashboard {instance.service.address}/dashboard")
    lines.append(f"            {binary} status --target 127.0.0.1:{instances[0].port}")
    for node in cluster.nodes:
        lines.append(f"{node.name}       psql '{node.url(database)}'; Patroni: curl http://127.0.0.1:{node.rest_port}/cluster")
    logs = " ".join(["node*/postgres.log", "node*/patroni.log", "etcd.log", "instance-*/headroom.log"])
    return [*lines, f"logs        cd {cluster.home} && tail -F {logs}"]


def proposals(cluster: PatroniCluster, leader: str) -> list[str]:
    """Commands for another terminal, with the present process ids."""
    node = next((node for node in cluster.nodes if node.name == leader), cluster.nodes[0])
    patroni = node.patroni.pid if node.patroni else 0
    postmaster = node.postmaster or 0
    everything = f"{patroni} {postmaster} $(cat /proc/{postmaster}/task/{postmaster}/children)"
    control = f"{cluster.programs}/bin/patronictl -c {cluster.control}"
    assert cluster.etcd is not None and node.peers_link is not None
    return [
        f"switch over      {control} switchover {SCOPE} --force",
        f"kill             kill -9 {everything}",
        f"freeze           kill -STOP {everything}     (-CONT ends it)",
        f"cut off          kill -STOP {node.etcd_link.pid} {node.peers_link.pid}     (-CONT ends it)",
        f"stop etcd        kill -STOP {cluster.etcd.pid}     (-CONT ends it)",
        f"look             {control} list",
    ]


def one_line(moment: Moment, recorder: LiveRecorder) -> str:
    nodes = " ".join(
        f"{member['name']}={member['role']}/{member['state']}" + (f"/{member['lag']}B" if member.get("lag") else "")
        for member in moment.members
    )
    return (
        f"{time.strftime('%H:%M:%S')} leader={moment.leader or 'none'} timeline={moment.timeline} {nodes or 'no Patroni answers'}"
        f" allowed/s={sum(moment.allowed) / moment.seconds:.0f} gap={recorder.overall.present:.1f}"
        f" longest={recorder.overall.longest:.1f} errors: {errors(recorder)}"
    )


def table(moment: Moment, cluster: PatroniCluster) -> list[str]:
    lines = ["node   port   role          state          timeline  lag, bytes  postmaster  Patroni"]
    for node in cluster.nodes:
        member = next((member for member in moment.members if member["name"] == node.name), {})
        patroni = node.patroni.pid if node.patroni and node.patroni.poll() is None else "-"
        lines.append(
            f"{node.name:6} {node.port:<6} {member.get('role', '-'):13} {member.get('state', 'unknown'):14}"
            f" {member.get('timeline', '-')!s:>8}  {member.get('lag', '-')!s:>10}  {node.postmaster or '-'!s:>10}  {patroni!s:>7}"
        )
    return lines


def screen(moment: Moment, recorder: LiveRecorder, cluster: PatroniCluster, instances: list[Instance], about: list[str]) -> str:
    lines = [*about, "", *table(moment, cluster), ""]
    lines.append("            allowed/s       gap   longest since the lead changed")
    for name, allowed, gaps in [
        *((f"instance {i.index}", moment.allowed[i.index], recorder.gaps[i.index]) for i in instances),
        ("together", sum(moment.allowed), recorder.overall),
    ]:
        lines.append(f"{name:11} {allowed / moment.seconds:9.0f} {gap(gaps.present):>9}   {gap(gaps.longest)}")
    lines += [f"errors      {errors(recorder)}", ""]
    lines += [f"To {line}" for line in proposals(cluster, moment.leader)]
    return framed([*lines, "", *moment.events[-4:]])


def framed(lines: list[str]) -> str:
    """A screen with these lines, in place of the one before."""
    lines = [*lines, "Ctrl-C ends everything and deletes the data."]
    return HOME + "".join(f"{line}{TO_END_OF_LINE}\n" for line in lines) + "\x1b[J"

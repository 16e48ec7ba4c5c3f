"""Whom the nemesis may strike: of schedulers and of workers one always is well."""

from pathlib import Path
from random import Random
from typing import cast

import pytest

from chaos.cluster import Cluster
from chaos.node import Node, Role
from chaos.record import Recorder
from foliot.embedded.server import EmbeddedServer


class Standing:
    """A node as far as it matters here."""

    def __init__(self, role: Role, *, is_alive: bool = True, is_settled: bool = True) -> None:
        self.role = role
        self.is_alive = is_alive
        self.is_settled = is_settled
        self.trouble: str | None = None

    @property
    def is_well(self) -> bool:
        return self.is_alive and self.trouble is None

    def unsettle(self) -> None:
        self.is_settled = False


@pytest.fixture
def cluster(tmp_path: Path) -> Cluster:
    with Recorder(tmp_path) as recorder:
        return Cluster(EmbeddedServer(tmp_path / "data"), tmp_path, Random(1), recorder)


def fill(cluster: Cluster, *nodes: Standing) -> list[Node]:
    cluster.nodes = {str(number): cast("Node", node) for number, node in enumerate(nodes)}
    return list(cluster.nodes.values())


def test_of_two_that_are_well_either_can_be_harmed(cluster: Cluster) -> None:
    nodes = fill(cluster, Standing(Role.WORKER), Standing(Role.WORKER), Standing(Role.SCHEDULER))
    assert cluster.spare(Role.WORKER) == nodes[:2]


def test_the_last_one_that_is_well_is_spared(cluster: Cluster) -> None:
    dead = Standing(Role.WORKER, is_alive=False)
    fill(cluster, Standing(Role.WORKER), dead, Standing(Role.SCHEDULER))
    assert cluster.spare(Role.WORKER) == []
    assert cluster.spare(Role.SCHEDULER) == []


def test_who_is_in_trouble_is_not_counted_on_until_it_is_over(cluster: Cluster) -> None:
    first, second = fill(cluster, Standing(Role.WORKER), Standing(Role.WORKER))
    with cluster.troubled(first, "stop worker"):
        assert cluster.well(Role.WORKER) == [second]
        assert cluster.spare(Role.WORKER) == []
    assert cluster.spare(Role.WORKER) == [first, second]


def test_one_scheduler_always_has_been_well_for_a_while(cluster: Cluster) -> None:
    old, young = Standing(Role.SCHEDULER), Standing(Role.SCHEDULER, is_settled=False)
    nodes = fill(cluster, old, young)
    assert cluster.spare(Role.SCHEDULER) == [nodes[1]]
    with cluster.troubled(nodes[0], "stop scheduler"):
        pass
    assert cluster.spare(Role.SCHEDULER) == []


def test_the_only_api_can_be_harmed(cluster: Cluster) -> None:
    nodes = fill(cluster, Standing(Role.API))
    assert cluster.spare(Role.API) == nodes

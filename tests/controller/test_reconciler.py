"""One deployment at a time: what is written, what is left alone, and who is believed."""

from __future__ import annotations

import asyncio
from collections import Counter

from hermetic.errors import Forbidden, ServerError, Unreachable
from tests.controller.running import a_model, condition, ready, reason, rest, running, where, written
from tests.fakes.cluster_in_memory import ClusterInMemory, Coordinates, Manifest
from tests.fakes.virtual_loop import virtually
from tests.snapshots import rendered

CHILDREN = Counter(list(rendered(a_model())))
GARBAGE_COLLECTION_SECONDS = 1000.0  # the longest pause between two attempts of Kubernetes' garbage collector


def test_a_create_writes_each_child_once_and_the_status_once() -> None:
    async def scenario() -> None:
        cluster = ClusterInMemory()
        async with running(cluster):
            cluster.put(a_model())
            await rest()
            assert Counter(written(cluster)) == CHILDREN + Counter({"status": 1})
            assert written(cluster)[-2:] == ["Deployment", "status"], "the network policy first, the workload after it"
            assert sum(cluster.lists.values()) == len(cluster.lists), "nothing was read but the first lists"

    virtually(scenario)


def test_nothing_is_written_at_rest_or_on_resync() -> None:
    async def scenario() -> None:
        cluster = ClusterInMemory()
        async with running(cluster):
            cluster.put(a_model())
            await rest()
            before = len(cluster.writes)
            await rest(4 * 600)
            assert cluster.lists["deployments"] == 5
            assert len(cluster.writes) == before

    virtually(scenario)


def test_nothing_is_written_after_a_restart() -> None:
    async def scenario() -> None:
        cluster = ClusterInMemory()
        async with running(cluster):
            cluster.put(a_model())
            await rest()
        before = len(cluster.writes)
        async with running(cluster):
            await rest()
        assert len(cluster.writes) == before

    virtually(scenario)


def test_a_strangers_object_is_never_taken_over() -> None:
    async def scenario() -> None:
        cluster = ClusterInMemory()
        theirs: Manifest = {
            "apiVersion": "v1",
            "kind": "Service",
            "metadata": {"name": "llama", "namespace": "team-a"},
            "spec": {"selector": {"app": "somebody-elses"}},
        }
        before = dict(cluster.put(theirs))
        async with running(cluster):
            cluster.put(a_model())
            await rest(30)
            assert cluster.objects[where("Service")] == before
            assert reason(cluster) == "ChildNotOwned"
            assert "Service 'llama' exists and is not owned" in ready(cluster)["message"]
            assert where("Deployment") not in cluster.objects, "no workload without its own Service"

            cluster.remove("Service", "team-a", "llama")
            await rest(300)
            assert "hermetic.dev/modeldeployment" in cluster.objects[where("Service")]["metadata"]["labels"]
            assert reason(cluster) == "Starting"

    virtually(scenario)


def test_children_of_an_earlier_deployment_of_the_same_name_are_waited_for() -> None:
    async def scenario() -> None:
        cluster = ClusterInMemory()
        async with running(cluster):
            cluster.put(a_model())
            await rest()
            cluster.remove("ModelDeployment", "team-a", "llama")
            cluster.put(a_model())
            await rest()
            assert reason(cluster) == "ProgressingWithRetry"
            assert "still being removed" in ready(cluster)["message"]
            assert "17 minutes after an outage of the API server; wait, or delete it" in ready(cluster)["message"]
            before = written(cluster)
            await rest(GARBAGE_COLLECTION_SECONDS)
            assert written(cluster) == before
            for kind in CHILDREN:  # as the garbage collector does
                cluster.remove(kind, "team-a", "llama")
            await rest(2)
            assert reason(cluster) == "Starting"
            owner = cluster.objects[where("ModelDeployment")]["metadata"]["uid"]
            for kind in CHILDREN:
                assert cluster.objects[where(kind)]["metadata"]["ownerReferences"][0]["uid"] == owner

    virtually(scenario)


def test_a_write_whose_answer_is_lost_is_not_repeated() -> None:
    async def scenario() -> None:
        cluster = ClusterInMemory()
        lost: list[Coordinates] = []

        async def losing(verb: str, at: Coordinates) -> None:
            if verb == "patch" and at not in lost:
                lost.append(at)
                raise Unreachable("no answer in time")

        cluster.done = losing
        async with running(cluster):
            cluster.put(a_model())
            await rest(60)
            assert set(lost) == {where(kind) for kind in CHILDREN}
            assert Counter(written(cluster)) == CHILDREN + Counter({"status": 1})

    virtually(scenario)


def test_what_the_watch_shows_late_is_taken_in_and_not_taken_for_a_stranger() -> None:
    async def scenario() -> None:
        cluster = ClusterInMemory()

        async def losing(verb: str, at: Coordinates) -> None:
            if (verb, at[0]) == ("patch", "Service") and written(cluster).count("Service") == 1:
                raise Unreachable("no answer in time")

        cluster.done = losing
        async with running(cluster) as operator:

            def all_but_services(manifest: Manifest, *, gone: bool) -> None:
                if manifest["kind"] != "Service":
                    operator.see(manifest, gone=gone)

            cluster.see = all_but_services
            cluster.put(a_model())
            await rest(60)
            assert reason(cluster) == "Starting"
            assert written(cluster).count("Service") == 2, "the second was refused, and the third not needed"

    virtually(scenario)


def test_a_child_that_lost_our_labels_gets_them_back_and_is_left_in_peace() -> None:
    async def scenario() -> None:
        cluster = ClusterInMemory()
        async with running(cluster) as operator:
            cluster.put(a_model())
            await rest()
            stripped = cluster.edit(
                where("Deployment"), lambda manifest: manifest["metadata"]["labels"].clear(), seen=False
            )
            operator.see(stripped, gone=True)  # it left the selection of our watch
            await rest(60)
            assert cluster.objects[where("Deployment")]["metadata"]["labels"]["app.kubernetes.io/managed-by"]
            writes = len(cluster.writes)
            await rest(3600)
            assert len(cluster.writes) == writes

    virtually(scenario)


def test_a_failed_wall_keeps_the_workload_from_being_created() -> None:
    async def scenario() -> None:
        cluster = ClusterInMemory()

        async def no_policies(verb: str, at: Coordinates) -> None:
            if (verb, at[0]) == ("patch", "NetworkPolicy"):
                raise ServerError("etcd is ill", status=500)

        cluster.fault = no_policies
        async with running(cluster):
            cluster.put(a_model())
            await rest(600)
            assert "Deployment" not in written(cluster)
            cluster.fault = ClusterInMemory().fault
            await rest(600)
            assert where("Deployment") in cluster.objects

    virtually(scenario)


def test_a_deployment_deleted_meanwhile_gets_no_children_and_no_status() -> None:
    async def scenario() -> None:
        cluster = ClusterInMemory()
        hold = asyncio.Event()

        async def slow(verb: str, at: Coordinates) -> None:
            if (verb, at[0]) == ("patch", "Service"):
                await hold.wait()

        cluster.fault = slow
        async with running(cluster):
            cluster.put(a_model())
            await rest()
            cluster.remove("ModelDeployment", "team-a", "llama")
            hold.set()
            await rest(600)
            assert "status" not in written(cluster)
            assert written(cluster).count("Deployment") <= 1
            assert where("ModelDeployment") not in cluster.objects

    virtually(scenario)


def test_a_namespace_that_goes_away_is_told_once_and_written_to_no_more() -> None:
    async def scenario() -> None:
        cluster = ClusterInMemory()

        async def ending(verb: str, _at: Coordinates) -> None:
            if verb == "patch":
                raise Forbidden("being terminated", status=403, causes=(("NamespaceTerminating", "it is going"),))

        async with running(cluster):
            cluster.put(a_model())
            await rest()
            cluster.fault = ending
            for kind in CHILDREN:  # as the namespace controller does
                cluster.remove(kind, "team-a", "llama")
                await rest(5)
            await rest(3600)
            assert reason(cluster) == "NamespaceTerminating"
            assert len(written(cluster)) - CHILDREN.total() - 1 == 2, "one refused write and one word about it"

            cluster.fault = ClusterInMemory().fault
            cluster.remove("ModelDeployment", "team-a", "llama")
            cluster.put(a_model())  # in a namespace of the same name
            await rest()
            assert reason(cluster) == "Starting"

    virtually(scenario)


def test_annotations_that_open_a_public_side_are_taken_out_by_one_write() -> None:
    async def scenario() -> None:
        cluster = ClusterInMemory()
        async with running(cluster):
            cluster.put(a_model())
            await rest()
            public = "service.beta.kubernetes.io/azure-pip-name"
            cluster.edit(
                where("Service"), lambda manifest: manifest["metadata"]["annotations"].update({public: "pip-1"})
            )
            await rest()
            assert public not in cluster.objects[where("Service")]["metadata"]["annotations"]
            assert written(cluster).count("Service") == 2, "once to make it, once without them"

    virtually(scenario)


def test_what_is_surplus_is_deleted_once_however_late_the_watch_tells() -> None:
    async def scenario() -> None:
        cluster = ClusterInMemory()
        async with running(cluster) as operator:
            cluster.put(a_model(replicas=2))
            await rest()

            def late(manifest: Manifest, *, gone: bool) -> None:
                if not gone:
                    operator.see(manifest, gone=gone)

            cluster.see = late
            cluster.edit(where("ModelDeployment"), lambda manifest: manifest["spec"].update(replicas=1))
            await rest()
            for number in range(5):
                cluster.edit(where("Deployment"), lambda manifest, n=number: manifest.update(status={"replicas": n}))
                await rest()
            assert written(cluster).count("-PodDisruptionBudget") == 1

    virtually(scenario)


def test_a_webhook_that_changes_what_we_write_is_a_quarrel_like_any_other() -> None:
    async def scenario() -> None:
        cluster = ClusterInMemory()

        def mutate(manifest: Manifest) -> None:
            if manifest["kind"] == "NetworkPolicy":
                manifest["spec"]["egress"] = [{}]

        cluster.admit = mutate
        async with running(cluster):
            cluster.put(a_model())
            await rest(30)
            assert written(cluster).count("NetworkPolicy") == 4
            assert reason(cluster) == "DriftContested"

    virtually(scenario)


async def _let_everything_pass(_verb: str, _at: Coordinates) -> None:
    """A cluster that takes every write again."""


PUBLIC = {"loadBalancer": {"ingress": [{"ip": "203.0.113.9"}]}}


def test_a_public_service_goes_though_every_other_write_is_refused() -> None:
    async def scenario() -> None:
        cluster = ClusterInMemory()

        async def refuse_the_workload(verb: str, at: Coordinates) -> None:
            if (verb, at[0]) == ("patch", "Deployment"):
                raise Forbidden("admission webhook denied the request: no", status=403, reason="Forbidden")

        cluster.fault = refuse_the_workload
        async with running(cluster):
            cluster.put(a_model())
            await rest(5)
            cluster.edit(where("Service"), lambda service: service.update(status=PUBLIC))
            await rest(60)
            assert where("Service") not in cluster.objects
            assert condition(cluster, "EndpointPrivate")["message"].endswith("'203.0.113.9'; Service removed")

    virtually(scenario)


def test_a_public_service_that_may_not_be_deleted_is_said_to_be_there_still() -> None:
    async def scenario() -> None:
        cluster = ClusterInMemory()

        async def refuse_to_delete(verb: str, _: Coordinates) -> None:
            if verb == "delete":
                raise Forbidden('cannot delete resource "services"', status=403, reason="Forbidden")

        async with running(cluster):
            cluster.put(a_model())
            await rest(5)
            cluster.fault = refuse_to_delete
            cluster.edit(where("Service"), lambda service: service.update(status=PUBLIC))
            cluster.remove(*where("NetworkPolicy"))
            await rest(5)
            assert where("NetworkPolicy") in cluster.objects
            assert reason(cluster) == "PermissionLost"
            assert condition(cluster, "EndpointPrivate")["message"].endswith("the Service is being removed")
            cluster.fault = _let_everything_pass
            await rest(60)
            assert where("Service") not in cluster.objects
            assert condition(cluster, "EndpointPrivate")["message"].endswith("Service removed")

    virtually(scenario)


def test_a_public_service_of_a_spec_that_cannot_be_read_goes() -> None:
    async def scenario() -> None:
        cluster = ClusterInMemory()
        async with running(cluster):
            cluster.put(a_model())
            await rest(5)
            cluster.edit(where("ModelDeployment"), lambda model: model["spec"].update(replicas="many"))
            cluster.edit(where("Service"), lambda service: service.update(status=PUBLIC))
            await rest(5)
            assert where("Service") not in cluster.objects
            assert reason(cluster) == "SpecInvalid"

    virtually(scenario)


def test_a_service_that_was_public_stays_away_however_fast_it_went() -> None:
    async def scenario() -> None:
        cluster = ClusterInMemory()
        async with running(cluster):
            cluster.put(a_model())
            await rest(5)
            cluster.writes.clear()
            cluster.edit(where("Service"), lambda service: service.update(status=PUBLIC))
            await rest(5)
            assert written(cluster)[:2] == ["-Service", "status"]
            assert "Service" not in written(cluster)

    virtually(scenario)

"""Whether what runs is what was rendered: the live template and the live pods, container by container."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from hermetic.api.text import one_line
from hermetic.kinds import DEPLOYMENT
from hermetic.objects.names import template_of
from hermetic.plan.contents import containers, contents, differing
from hermetic.plan.gates import image_is_allowed
from hermetic.plan.world import World

OURS = {"containers": "engine", "initContainers": "link-cache"}
"""The one container of each kind that is rendered."""


@dataclass(frozen=True, slots=True)
class Strange:
    """Something that runs, or would, and was not rendered; `of_image`: a container or an image, else another field."""

    message: str
    of_image: bool


def strange(world: World) -> Strange | None:
    """The first thing in the template or in a pod that was not rendered, images before everything else."""
    found = tuple(_everything(world))
    return next((one for one in found if one.of_image), next(iter(found), None))


def _everything(world: World) -> Iterator[Strange]:
    live = world.child(DEPLOYMENT)
    template = live["spec"]["template"] if live is not None else {}
    expected = contents(template.get("spec") or {})
    yield from _images(f"the template of Deployment '{world.owner.name}'", expected, world)
    for pod in sorted(world.pods, key=lambda pod: str(pod["metadata"]["name"])):
        held, where = pod.get("spec"), f"pod '{pod['metadata']['name']}'"
        if not held or (pod.get("status") or {}).get("phase") in ("Succeeded", "Failed"):
            continue
        yield from _images(where, held, world)
        # A pod of an earlier template is on its way out, and that template is not known any more.
        if template_of(pod) and template_of(pod) == template_of(template):
            yield from _fields(where, held, expected)


def _images(where: str, held: Mapping[str, Any], world: World) -> Iterator[Strange]:
    for kind, container in containers(held):
        name, image = one_line(container["name"]), one_line(container["image"])
        runs = f"{where} holds container '{name}' ({kind}) with image '{image}'"
        if OURS.get(kind) != container["name"]:
            yield Strange(f"{runs}, which Hermetic did not render", of_image=True)
        elif "@sha256:" not in container["image"]:
            yield Strange(f"{runs}, which is not named by digest", of_image=True)
        elif not image_is_allowed(world, container["image"]):
            yield Strange(f"{runs}, whose registry may not be used in this namespace", of_image=True)


def _fields(where: str, held: Mapping[str, Any], expected: Mapping[str, Any]) -> Iterator[Strange]:
    wanted = {(kind, item["name"]): item for kind, item in containers(expected)}
    for kind, item in containers(held):
        known = wanted.get((kind, item["name"]))
        if known is None:
            continue
        if item["image"] != known["image"]:
            image = one_line(item["image"])
            yield Strange(f"{where}: container '{item['name']}' has another image than its template: '{image}'", True)
        if fields := differing(item["marks"], known["marks"]):
            yield Strange(
                f"{where}: container '{item['name']}' differs from its template in: {', '.join(fields)}", False
            )
    if fields := differing(held["marks"], expected["marks"]):
        yield Strange(f"{where} differs from its template in: {', '.join(fields)}", False)

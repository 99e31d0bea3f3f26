"""`trustedNodeAgents`: a team's own agents on its nodes, in an audit's policy and the operator's configuration."""

from __future__ import annotations

from typing import Annotated, ClassVar

from pydantic import StringConstraints

from hermetic.api.field_types import DnsLabel, matches
from hermetic.api.rules import ApiModel, Rule


class TrustedNodeAgent(ApiModel):
    """One image of one controller in one namespace. A controller whose pods run several images has an entry for each.

    Pods of this controller whose images are all named may have rights over their node, and with `hostNetwork` its
    network. Nothing else is excused.
    """

    namespace: DnsLabel
    """Namespace that it runs in. Only those who administer the nodes should be able to make pods there."""
    owner: Annotated[
        str,
        StringConstraints(max_length=317),
        matches(
            r"^[A-Z][A-Za-z0-9]{0,62}/([a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?|([a-z0-9][-a-z0-9.]{0,251})?[*])$",
            "must be kind and name of a controller, such as 'DaemonSet/nvidia-device-plugin-daemonset', or the "
            "beginning of names with '*' at the end, such as 'DaemonSet/nvidia-driver-daemonset-*' or 'DaemonSet/*'",
        ),
    ]
    """Kind and name of the controller that makes its pods, for example 'DaemonSet/nvidia-device-plugin-daemonset'.

    '*' at the end stands for any rest of the name: 'DaemonSet/nvidia-driver-daemonset-*', 'DaemonSet/*'. Each user who
    may make a controller in the namespace can then run the images with rights over the node, with any command.
    """
    image: Annotated[
        str,
        StringConstraints(max_length=512),
        matches(
            r"^([a-z0-9][-a-z0-9]*([.][a-z0-9][-a-z0-9]*)+(:[0-9]{1,5})?|[a-z0-9][-a-z0-9]*:[0-9]{1,5})"
            r"(/[a-z0-9]+([._-]+[a-z0-9]+)*)+(@sha256:[0-9a-f]{64}|/[*])?$",
            "must be a repository with its registry, such as 'contoso.azurecr.io/nvidia/driver', with or without "
            "'@sha256:DIGEST', or a path of it with '/*' at the end, such as 'contoso.azurecr.io/nvidia/*', and "
            "without a tag: a tag can be moved to another image",
        ),
    ]
    """Image: registry and repository, better with '@sha256:DIGEST'. Its registry must be an allowed one.

    '/*' at the end stands for every repository below the path, which is never the registry alone.
    """
    host_network: bool = False
    """Whether its pods may have their node's network too, as a network plug-in of your own needs; only by digest."""

    RULES: ClassVar[tuple[Rule, ...]] = (
        Rule(
            cel="!has(self.hostNetwork) || !self.hostNetwork || self.image.contains('@')",
            message="`hostNetwork: true` needs an image with '@sha256:DIGEST'",
            holds=lambda agent: not agent.host_network or "@" in agent.image,
            field=".image",
        ),
    )

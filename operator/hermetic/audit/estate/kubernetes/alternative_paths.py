"""Kinds whose presence alone can change the path of packets: gateways, second networks, separate proxies."""

from __future__ import annotations

from typing import ClassVar

from hermetic.audit.estate.kubernetes.objects import KubernetesObject


class CiliumEgressGatewayPolicy(KubernetesObject):
    """cilium.io/v2/ciliumegressgatewaypolicies."""

    TYPE: ClassVar[str] = "cilium.io/v2/ciliumegressgatewaypolicies"
    KIND: ClassVar[str] = "CiliumEgressGatewayPolicy"
    NAMESPACED: ClassVar[bool] = False


class CiliumLocalRedirectPolicy(KubernetesObject):
    """cilium.io/v2/ciliumlocalredirectpolicies."""

    TYPE: ClassVar[str] = "cilium.io/v2/ciliumlocalredirectpolicies"
    KIND: ClassVar[str] = "CiliumLocalRedirectPolicy"


class CiliumEnvoyConfig(KubernetesObject):
    """cilium.io/v2/ciliumenvoyconfigs."""

    TYPE: ClassVar[str] = "cilium.io/v2/ciliumenvoyconfigs"
    KIND: ClassVar[str] = "CiliumEnvoyConfig"


class CiliumClusterwideEnvoyConfig(KubernetesObject):
    """cilium.io/v2/ciliumclusterwideenvoyconfigs."""

    TYPE: ClassVar[str] = "cilium.io/v2/ciliumclusterwideenvoyconfigs"
    KIND: ClassVar[str] = "CiliumClusterwideEnvoyConfig"
    NAMESPACED: ClassVar[bool] = False


class CiliumExternalWorkload(KubernetesObject):
    """cilium.io/v2/ciliumexternalworkloads."""

    TYPE: ClassVar[str] = "cilium.io/v2/ciliumexternalworkloads"
    KIND: ClassVar[str] = "CiliumExternalWorkload"
    NAMESPACED: ClassVar[bool] = False


class CalicoEgressGatewayPolicy(KubernetesObject):
    """crd.projectcalico.org/v1/egressgatewaypolicies."""

    TYPE: ClassVar[str] = "crd.projectcalico.org/v1/egressgatewaypolicies"
    KIND: ClassVar[str] = "EgressGatewayPolicy"
    NAMESPACED: ClassVar[bool] = False


class CalicoExternalNetwork(KubernetesObject):
    """crd.projectcalico.org/v1/externalnetworks."""

    TYPE: ClassVar[str] = "crd.projectcalico.org/v1/externalnetworks"
    KIND: ClassVar[str] = "ExternalNetwork"
    NAMESPACED: ClassVar[bool] = False


class CalicoBgpPeer(KubernetesObject):
    """crd.projectcalico.org/v1/bgppeers."""

    TYPE: ClassVar[str] = "crd.projectcalico.org/v1/bgppeers"
    KIND: ClassVar[str] = "BGPPeer"
    NAMESPACED: ClassVar[bool] = False


class TigeraEgressGateway(KubernetesObject):
    """operator.tigera.io/v1/egressgateways."""

    TYPE: ClassVar[str] = "operator.tigera.io/v1/egressgateways"
    KIND: ClassVar[str] = "EgressGateway"


class NetworkAttachmentDefinition(KubernetesObject):
    """k8s.cni.cncf.io/v1/network-attachment-definitions."""

    TYPE: ClassVar[str] = "k8s.cni.cncf.io/v1/network-attachment-definitions"
    KIND: ClassVar[str] = "NetworkAttachmentDefinition"


class PodNetwork(KubernetesObject):
    """multitenancy.acn.azure.com/v1alpha1/podnetworks: interfaces of pods in other virtual networks."""

    TYPE: ClassVar[str] = "multitenancy.acn.azure.com/v1alpha1/podnetworks"
    KIND: ClassVar[str] = "PodNetwork"
    NAMESPACED: ClassVar[bool] = False


class EnvoyFilter(KubernetesObject):
    """networking.istio.io/v1alpha3/envoyfilters."""

    TYPE: ClassVar[str] = "networking.istio.io/v1alpha3/envoyfilters"
    KIND: ClassVar[str] = "EnvoyFilter"

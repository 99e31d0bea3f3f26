"""File shares without a storage account."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from hermetic.audit.checks.family import check_each
from hermetic.audit.cluster.members import is_of_the_cluster, subnets_of
from hermetic.audit.estate.azure.storage import FileShare, NfsProperties
from hermetic.audit.estate.estate import Estate
from hermetic.audit.estate.observation import Lookup
from hermetic.audit.evaluation.each_resource import each_share
from hermetic.audit.evaluation.results import CheckResult, does_not_apply, fails, passes, unknown
from hermetic.audit.model.hops import INTERNET, STORAGE, path_of
from hermetic.audit.policy.declarations import Policy


@check_each("fileshare-public", each_share)
def fileshare_public(estate: Estate, _policy: Policy, share: Lookup[FileShare]) -> Iterator[CheckResult]:
    """Absent counts as open: the service's default is not documented."""
    access = (share.value.public_network_access if share.value else None) or ""
    properties = share.value.public_access_properties if share.value else None
    listed = (properties.allowed_subnets or ()) if properties is not None else ()
    strange = [subnet_id for subnet_id in listed if not is_of_the_cluster(estate, subnet_id)]
    if access.lower() != "disabled":
        message = f"publicNetworkAccess is {access or 'absent'}"
        yield fails(share.target, "PublicAccess", message, share, paths=(path_of(INTERNET, STORAGE),))
    elif (
        strange
        and (gap := next((observation for observation in subnets_of(estate)[1] if observation.problem), None))
        is not None
    ):
        yield unknown(
            share.target, "SubnetsNotSeen", "the audit could not see completely whose subnets it lets in", gap
        )
    elif strange:
        message = f"it lets in subnets that are not the cluster's: {', '.join(strange)}"
        yield fails(share.target, "OtherSubnets", message, share)
    else:
        yield passes(share.target, "PrivateOnly", "publicNetworkAccess is Disabled", share)


def _each_nfs_share(
    estate: Estate, policy: Policy, evaluate: Callable[[Lookup[FileShare], NfsProperties], Iterable[CheckResult]]
) -> Iterator[CheckResult]:
    """Apply `evaluate` to the NFS shares; one without a protocol counts as NFS."""

    def of_share(share: Lookup[FileShare]) -> Iterator[CheckResult]:
        protocol = (share.value.protocol if share.value else None) or "NFS"
        nfs = share.value.nfs_protocol_properties if share.value else None
        if protocol.lower() == "smb":
            yield does_not_apply(share.target, "NotNfs", "the share does not speak NFS", share)
        elif protocol.lower() != "nfs":
            yield unknown(share.target, "ProtocolUnknown", f"protocol {protocol!r} is not known", share)
        else:
            yield from evaluate(share, nfs or NfsProperties())

    yield from each_share(estate, policy, of_share)


@check_each("fileshare-eit", _each_nfs_share)
def fileshare_eit(
    _estate: Estate, _policy: Policy, share: Lookup[FileShare], nfs: NfsProperties
) -> Iterator[CheckResult]:
    """Anything but Enabled lets clients mount without encryption."""
    required = nfs.encryption_in_transit_required or ""
    if required.lower() == "enabled":
        yield passes(share.target, "Encrypted", "encryption in transit is required", share)
    else:
        message = f"encryptionInTransitRequired is {required or 'absent'}: weights travel in clear"
        yield fails(share.target, "InClear", message, share)


@check_each("fileshare-squash", _each_nfs_share)
def fileshare_squash(
    _estate: Estate, _policy: Policy, share: Lookup[FileShare], nfs: NfsProperties
) -> Iterator[CheckResult]:
    """Absent means that root on a node is root on the share."""
    squash = nfs.root_squash or "NoRootSquash"
    if squash.lower() in {"rootsquash", "allsquash"}:
        yield passes(share.target, "Squashed", f"rootSquash is {squash}", share)
    elif squash.lower() == "norootsquash":
        yield fails(share.target, "RootWrites", "root on a node is root on the share", share)
    else:
        yield unknown(share.target, "SquashUnknown", f"rootSquash {squash!r} is not known", share)

"""File shares without a storage account."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from hermetic.audit.checks.family import check_each
from hermetic.audit.cluster_scope import is_of_the_cluster, subnets_of
from hermetic.audit.estate.azure.storage import FileShare, NfsProperties
from hermetic.audit.estate.estate import Estate
from hermetic.audit.estate.observation import Seen
from hermetic.audit.evaluation import CheckResult, does_not_apply, fails, passes, unknown
from hermetic.audit.hops import INTERNET, STORAGE, path_of
from hermetic.audit.policy import Policy
from hermetic.audit.registry_storage_scope import each_share


@check_each("fileshare-public", each_share)
def fileshare_public(estate: Estate, _policy: Policy, seen: Seen[FileShare]) -> Iterator[CheckResult]:
    """Absent counts as open: the service's default is not documented."""
    access = (seen.value.public_network_access if seen.value else None) or ""
    properties = seen.value.public_access_properties if seen.value else None
    listed = (properties.allowed_subnets or ()) if properties is not None else ()
    strange = [one for one in listed if not is_of_the_cluster(estate, one)]
    if access.lower() != "disabled":
        words = f"publicNetworkAccess is {access or 'absent'}"
        yield fails(seen.target, "PublicAccess", words, seen, paths=(path_of(INTERNET, STORAGE),))
    elif (
        strange
        and (gap := next((observation for observation in subnets_of(estate)[1] if observation.problem), None))
        is not None
    ):
        yield unknown(seen.target, "SubnetsNotSeen", "whose subnets it lets in was not seen whole", gap)
    elif strange:
        words = f"subnets that are not the cluster's are let in: {', '.join(strange)}"
        yield fails(seen.target, "OtherSubnets", words, seen)
    else:
        yield passes(seen.target, "PrivateOnly", "publicNetworkAccess is Disabled", seen)


def _each_nfs_share(
    estate: Estate, policy: Policy, evaluate: Callable[[Seen[FileShare], NfsProperties], Iterable[CheckResult]]
) -> Iterator[CheckResult]:
    """Apply `evaluate` to the NFS shares; one without a protocol counts as NFS."""

    def of_share(seen: Seen[FileShare]) -> Iterator[CheckResult]:
        protocol = (seen.value.protocol if seen.value else None) or "NFS"
        nfs = seen.value.nfs_protocol_properties if seen.value else None
        if protocol.lower() == "smb":
            yield does_not_apply(seen.target, "NotNfs", "the share does not speak NFS", seen)
        elif protocol.lower() != "nfs":
            yield unknown(seen.target, "ProtocolUnknown", f"protocol {protocol!r} is not known", seen)
        else:
            yield from evaluate(seen, nfs or NfsProperties())

    yield from each_share(estate, policy, of_share)


@check_each("fileshare-eit", _each_nfs_share)
def fileshare_eit(_estate: Estate, _policy: Policy, seen: Seen[FileShare], nfs: NfsProperties) -> Iterator[CheckResult]:
    """Anything but Enabled lets clients mount without encryption."""
    required = nfs.encryption_in_transit_required or ""
    if required.lower() == "enabled":
        yield passes(seen.target, "Encrypted", "encryption in transit is required", seen)
    else:
        words = f"encryptionInTransitRequired is {required or 'absent'}: weights travel in clear"
        yield fails(seen.target, "InClear", words, seen)


@check_each("fileshare-squash", _each_nfs_share)
def fileshare_squash(
    _estate: Estate, _policy: Policy, seen: Seen[FileShare], nfs: NfsProperties
) -> Iterator[CheckResult]:
    """Absent means that root on a node is root on the share."""
    squash = nfs.root_squash or "NoRootSquash"
    if squash.lower() in {"rootsquash", "allsquash"}:
        yield passes(seen.target, "Squashed", f"rootSquash is {squash}", seen)
    elif squash.lower() == "norootsquash":
        yield fails(seen.target, "RootWrites", "root on a node is root on the share", seen)
    else:
        yield unknown(seen.target, "SquashUnknown", f"rootSquash {squash!r} is not known", seen)

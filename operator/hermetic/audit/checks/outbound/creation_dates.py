"""The verdict, by two dates, on an interface whose hidden address Azure does not show.

A machine that was created strictly after the moment since when its subnet is known to be private has no hidden
address. If it is older, of the same moment or dated after the begin of the audit, or if one of the dates is not
known, the verdict is Unknown, with a remedy that settles it. Only machines of the node resource group are decided so:
AKS never moves them to another subnet, while other interfaces can be moved.
"""

from __future__ import annotations

from dataclasses import replace

from hermetic.api.times import timestamp
from hermetic.audit.cluster.members import node_group_of, scale_sets_of, subnets_by_id
from hermetic.audit.egress.private_since import Created, Since, VoidProof, created, is_private, private_since
from hermetic.audit.estate.arm_ids import is_below, name_of
from hermetic.audit.estate.azure.vnet import NicFields, ScaleSet, Subnet
from hermetic.audit.estate.estate import Estate
from hermetic.audit.estate.observation import Lookup, Observation
from hermetic.audit.evaluation.results import CheckResult, passes, unknown
from hermetic.audit.model.findings import Severity, Verdict
from hermetic.audit.policy.declarations import Policy
from hermetic.audit.remedies.filling import Fill, values_of
from hermetic.audit.rules.subnet_context import surroundings
from hermetic.errors import FactDamaged

Subnets = tuple[Lookup[Subnet], ...]

NOT_A_NODE = """\
Azure does not show whether this interface has a hidden public address, and it is not of a node, so no date decides it.
Stop and deallocate its machine after its subnet became private, then accept this finding with an exception.
Warning: a machine that is deallocated is stopped until it is started again.
az vm deallocate --ids MACHINE_ID
az vm start --ids MACHINE_ID
"""
NOT_PRIVATE = """\
Azure does not show whether this interface has a hidden public address, and a machine in a subnet that is not private
gets one. Make the subnet private first; then replace the machine.
az network vnet subnet update --ids SUBNET_ID --default-outbound-access false
"""
STATE_IT = """\
Find out since when the subnet is private; the activity log of Azure goes back 90 days:
az monitor activity-log list --resource-id SUBNET_ID --offset 89d
State the moment in the policy file as `subnetsPrivateSince`, with `subnet`, `since` and `statedBy`, and audit again. \
Where later writes left the subnet private, state with `through` up to when you know that.
Without a statement: sign this audit, and audit again with --previous more than an hour later.
hermetic audit --azure CLUSTER_ID --policy policy.yaml
"""
REPLACE_IT = """\
Replace the machine: a re-image or a node image upgrade keeps the machine and the date of its creation.
Add a pool in the same subnet, which is private now.
az aks nodepool add --subscription CLUSTER_SUBSCRIPTION --resource-group CLUSTER_GROUP \\
--cluster-name CLUSTER_NAME --name NEW_POOL --vnet-subnet-id SUBNET_ID
Move the workloads, then delete the old pool.
Warning: deleting a pool ends every pod on it. A cluster keeps at least one pool of mode System.
az aks nodepool delete --subscription CLUSTER_SUBSCRIPTION --resource-group CLUSTER_GROUP \\
--cluster-name CLUSTER_NAME --name POOL_NAME
Then audit again:
hermetic audit --azure CLUSTER_ID --policy policy.yaml
"""
OF_NO_KNOWN_POOL = REPLACE_IT.replace(
    "Move the workloads, then delete the old pool.\n",
    "Move the workloads, then delete the pool of the machine. Its scale set has no tag aks-managed-poolName. These\n"
    "are the pools, with their subnets:\n"
    "az aks nodepool list --subscription CLUSTER_SUBSCRIPTION --resource-group CLUSTER_GROUP \\\n"
    '--cluster-name CLUSTER_NAME --query "[].{pool:name, subnet:vnetSubnetId}" --output table\n',
).replace("POOL_NAME", "OLD_POOL")
IN_FUTURE = """\
Set the clock of the machine that audits right, and audit again. If the date is still ahead, Azure's answer is wrong: \
accept this finding with an exception only where the machine is known to be younger than the private subnet.
hermetic audit --azure CLUSTER_ID --policy policy.yaml
"""
NOT_REPORTED = "Azure does not show defaultOutboundConnectivityEnabled of this interface"
MEANWHILE = "Until then, a route 0.0.0.0/0 -> None in the route table of the subnet stops what would leave this way."


def by_time(
    estate: Estate, policy: Policy, nic: NicFields, observations: tuple[Observation, ...], masked: str
) -> CheckResult:
    """The verdict on an interface without reported state. `observations` are its own, `masked` describes masks."""
    result = _result(estate, policy, nic, observations)
    message = f"{NOT_REPORTED}{result.message}; {masked}"
    if result.verdict is Verdict.PASS:
        return replace(result, message=message)
    meanwhile = "" if _is_dropped(estate, nic) else MEANWHILE
    return replace(result, message=message, remedy=f"{result.remedy}{meanwhile}".strip())


def _result(estate: Estate, policy: Policy, nic: NicFields, observations: tuple[Observation, ...]) -> CheckResult:
    subnets = _subnets_of(estate, nic)
    if not is_below(nic.id, node_group_of(estate) or "-"):
        machine = {"MACHINE_ID": nic.virtual_machine.id} if nic.virtual_machine is not None else {}
        return _unknown(nic, "NotTold", "", NOT_A_NODE, *observations, fill=machine)
    if (open_one := _not_private(nic, subnets)) is not None:
        message = f", and its subnet {name_of(open_one)} was not seen to be private"
        fill = {"SUBNET_ID": open_one} if open_one != nic.id else {}
        return _unknown(nic, "NotTold", message, NOT_PRIVATE, *observations, *subnets, fill=fill)
    return _by_dates(estate, policy, nic, subnets, (*observations, *subnets))


def _by_dates(
    estate: Estate, policy: Policy, nic: NicFields, subnets: Subnets, interface_observations: tuple[Observation, ...]
) -> CheckResult:
    dates = [(subnet, private_since(estate, policy, subnet)) for subnet in subnets]
    machine = created(estate, nic)
    for candidate, since in dates:
        if not isinstance(since, Since):
            reason = "PrivateSinceUnknown" if since is None else "WrittenSince"
            message = f"; {_date(machine)}, and {_why(candidate, since)}"
            return _unknown(
                nic, reason, message, STATE_IT, *interface_observations, fill={"SUBNET_ID": candidate.target}
            )
    sinces = [(subnet, since) for subnet, since in dates if isinstance(since, Since)]
    observations = (
        *interface_observations,
        *machine.observations,
        *(observation for _, since in sinces for observation in since.observations),
    )
    subnet, latest = max(sinces, key=lambda pair: pair[1].at)
    message = f"; {_date(machine)}, and {_in_words(sinces)}"
    if machine.at is not None and machine.at > latest.at:
        if policy.audited_at is not None and machine.at <= policy.audited_at:
            return passes(nic.id, "CreatedInPrivateSubnet", message, *observations)
        message += f"; that date is not before this audit, which began at {_moment(policy)}, so it proves nothing"
        return _unknown(nic, "CreationInFuture", message, IN_FUTURE, *observations)
    reason = "CreationNotSeen" if machine.at is None else "MachineOlder"
    fill = {"SUBNET_ID": subnet.target, **_pool_of(estate, nic)}
    remedy = REPLACE_IT if "POOL_NAME" in {**values_of(nic.id, ""), **fill} else OF_NO_KNOWN_POOL
    return _unknown(nic, reason, message, remedy, *observations, fill=fill)


def _unknown(
    nic: NicFields, reason: str, message: str, remedy: str, *observations: Observation, fill: Fill | None = None
) -> CheckResult:
    return unknown(nic.id, reason, message, *observations, severity=Severity.HIGH, remedy=remedy, fill=fill)


def _is_dropped(estate: Estate, nic: NicFields) -> bool:
    """Whether every subnet of the interface has an IPv4 default route with next hop `None`."""
    ours = subnets_by_id(estate)
    around = [ours.get(subnet_id.lower()) for subnet_id in nic.subnet_ids]
    try:
        return bool(around) and all(
            scoped is not None
            and scoped.observation.value is not None
            and surroundings(estate, scoped, scoped.observation.value).drops(4)
            for scoped in around
        )
    except FactDamaged:
        return False


def _subnets_of(estate: Estate, nic: NicFields) -> Subnets:
    ours = subnets_by_id(estate)
    return tuple(ours[subnet_id.lower()].observation for subnet_id in nic.subnet_ids if subnet_id.lower() in ours)


def _not_private(nic: NicFields, subnets: Subnets) -> str | None:
    """A subnet of the interface that is not known to be private, or not the cluster's; None if there is none."""
    private = {subnet.target.lower() for subnet in subnets if is_private(subnet)}
    return next(
        (subnet_id for subnet_id in nic.subnet_ids if subnet_id.lower() not in private),
        None if nic.subnet_ids else nic.id,
    )


def _date(machine: Created) -> str:
    name = "/".join(machine.machine.rsplit("/", 3)[1:]) if machine.machine else "its machine"
    return f"{name} was created at {timestamp(machine.at)}" if machine.at else f"Azure shows no date of {name}"


def _moment(policy: Policy) -> str:
    return timestamp(policy.audited_at) if policy.audited_at is not None else "a moment that is not known"


def _in_words(dates: list[tuple[Lookup[Subnet], Since]]) -> str:
    return "; ".join(f"subnet {name_of(subnet.target)} is private {since.message}" for subnet, since in dates)


def _why(subnet: Lookup[Subnet], void: VoidProof | None) -> str:
    if void is None:
        return f"nothing shows since when its subnet {name_of(subnet.target)} is private"
    return f"since when its subnet {name_of(subnet.target)} is private is not known any more: {void.message}"


def _pool_of(estate: Estate, nic: NicFields) -> dict[str, str]:
    """The pool by the tag that AKS sets on its scale set; empty without the tag."""
    owners: list[ScaleSet] = [scale_set for scale_set in scale_sets_of(estate) if is_below(nic.id, scale_set.id)]
    return next(({"POOL_NAME": scale_set.pool} for scale_set in owners if scale_set.pool), {})

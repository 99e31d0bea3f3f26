"""Destinations of the data collection rules that are associated with the cluster and with its nodes.

Container Insights with a managed identity and managed Prometheus send to what the rules of the cluster say: the
workspace that the add-on names is that of the older way to sign in. An agent of Azure Monitor on the nodes sends to
what the rules of its machine or scale set say.
"""

from __future__ import annotations

from collections.abc import Iterator

from hermetic.audit.checks.sinks.destinations import sent
from hermetic.audit.cluster_scope import scale_sets_of, whole_or_unknown
from hermetic.audit.estate.azure.data_collection import DataCollectionRule, DataCollectionRuleAssociation
from hermetic.audit.estate.estate import Estate
from hermetic.audit.estate.observation import Observation
from hermetic.audit.evaluation import Judgement, cannot_say, passes, whatever_is_damaged
from hermetic.audit.findings import Verdict
from hermetic.audit.held_identities import standing_machines
from hermetic.audit.policy import Policy


def of_collection_rules(estate: Estate, policy: Policy) -> Iterator[Judgement]:
    """A finding for each association, whose removal mends it and leaves the rule to others."""
    scale_sets, observations = scale_sets_of(estate), list[Observation]()
    machines = [one.id for one in standing_machines(estate, observations)]
    for target in (estate.cluster, *(one.id for one in scale_sets), *machines):
        associations = estate.every(DataCollectionRuleAssociation, target)
        observations.append(associations)
        for one in associations:
            yield from whatever_is_damaged(one.id or target, _association(estate, policy, one))
    yield from whole_or_unknown(estate.cluster, "what has data collection rules", scale_sets, *observations)


def _association(estate: Estate, policy: Policy, association: DataCollectionRuleAssociation) -> Iterator[Judgement]:
    if association.data_collection_rule_id is None:
        if association.data_collection_endpoint_id is None:
            yield cannot_say(association.id, "RuleNotNamed", "the association names no rule", association)
        return  # with an endpoint: agents read their configuration there
    seen = estate.one(DataCollectionRule, association.data_collection_rule_id)
    if seen.value is None:
        yield cannot_say(association.id, "RuleNotSeen", "its data collection rule could not be read", seen, association)
        return
    named = [(word, one) for word, one in seen.value.sinks if one]
    found = sent(estate, policy, association.id, named, seen, association)
    nameless = [word for word, one in seen.value.sinks if not one]
    if found.verdict is Verdict.FAIL:
        yield found
    elif nameless or seen.value.destinations is None:
        words = f"its rule does not identify where it sends to: {', '.join(nameless) or 'destinations'}"
        yield cannot_say(association.id, "SinkNotNamed", words, seen, association)
    elif named:
        yield found
    else:
        yield passes(
            association.id, "NothingSent", "its rule has no destination but the resource itself", seen, association
        )

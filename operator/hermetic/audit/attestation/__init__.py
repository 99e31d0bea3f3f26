"""Signed evidence: an audit report in an envelope, verified and chained. Pure: every `now` is an argument.

::

    refusals       every reason for which an attestation is refused, what it means and what to do
    statement      the payload: an in-toto Statement about one audit of one cluster
    report_form    the report inside it: complete, or without Pass and NotApplicable findings; checked for consistency
    signing        report -> envelope
    verification   envelope -> attestation, or the one reason for refusal
    chain          the sequence of attestations of a cluster; chain_findings: what can be wrong with it
    custom_resource  the EgressAttestation object that contains an envelope
    choosing       the newest valid attestation of many
    cluster_identity  what identifies a cluster, beside its ARM id

    Keys, signatures, envelopes and canonical JSON are in `hermetic.signing`.
"""

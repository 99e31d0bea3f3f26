"""Signed evidence: an audit report that can be carried, checked and chained. Pure: every `now` is an argument.

::

    refusals       every way in which evidence is not accepted, with what it means and what to do
    strict_json    bytes -> value and back, one way only: RFC 8785, no duplicates, no floats, no depth
    keys           Ed25519 and P-256 keys from PEM, and what a key is called
    signatures     one exact encoding for each algorithm
    envelope       DSSE: what stands around the payload, and the bytes that are signed
    statement      the payload: an in-toto Statement about one look at one cluster
    report_form    the report inside it: whole, or without what passed; never in contradiction to itself
    signing        report -> envelope
    verification   envelope -> attestation, or the one reason why not
    chain          many of them, each following the one before; chain_findings: what can be wrong with that
    custom_resource  the EgressAttestation object that carries an envelope
    choosing       the newest of many that counts
    cluster_identity  what a cluster is known by, beside its ARM id
"""

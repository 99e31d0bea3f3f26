#!/bin/sh
# Renews the attestation of one cluster (docs/renewal.md). Exit codes are those of `hermetic audit`.
#
# Pass and Fail are applied: a Fail has to close the gate. Unknown is not applied: the attestation before it counts until
# it expires, and the next run tries again.
set -eu
. "${RENEWAL_SETTINGS:-/etc/hermetic/renewal.env}"
: "${CLUSTER:?CLUSTER is the ARM id of the cluster}" "${SIGNING_KEY:?SIGNING_KEY is the file of the private key}"
: "${ATTESTATIONS:?ATTESTATIONS is the folder that keeps every attestation}" "${INPUTS:?INPUTS is the folder of policy.yaml and exceptions.yaml}"

newest=$(find "$ATTESTATIONS" -name '*.yaml' -type f | sort | tail -n 1)
name=$(date -u +%Y-%m-%dT%H-%M-%SZ)
# An attestation enters the folder when it is complete: what an interrupted run leaves is no link of the chain.
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

code=0
hermetic audit --azure "$CLUSTER" --policy "$INPUTS/policy.yaml" --exceptions "$INPUTS/exceptions.yaml" \
  --sign "$SIGNING_KEY" --attestation "$work/attestation.yaml" --valid-hours "${VALID_HOURS:-24}" \
  --out "$ATTESTATIONS/newest-report.html" ${newest:+--previous "$newest"} || code=$?

case $code in
  0 | 1)
    mv "$work/attestation.yaml" "$ATTESTATIONS/$name.yaml"
    kubectl apply --server-side --filename "$ATTESTATIONS/$name.yaml"
    # The folder is the archive. The cluster needs the newest attestation; a few older ones help to read its history.
    kubectl get egressattestations.hermetic.dev --sort-by=.metadata.creationTimestamp --output=name \
      | head -n -"${KEEP_IN_CLUSTER:-5}" | xargs --no-run-if-empty kubectl delete
    ;;
  *)
    echo "hermetic audit ended with exit code $code: nothing was applied, and the last attestation counts until it expires" >&2
    ;;
esac
exit "$code"

"""Pure: keys, DSSE envelopes, signatures and canonical JSON, for whatever is signed: evidence, bundles, weights."""

"""Pure: keys, DSSE envelopes, signatures and canonical JSON for everything signed: evidence, bundles, weights."""

"""`hermetic attest`: its command, and attestations as files and as text."""

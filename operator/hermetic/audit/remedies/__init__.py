"""The remedy of a finding: steps of explanation, warning and commands, with the finding's own names filled in."""

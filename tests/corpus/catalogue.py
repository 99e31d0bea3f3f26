"""The rows of the bad-input catalogue that the API itself answers, and what an answer looks like here.

Rows that need to look at the cluster, at the weights or at Azure are answered by gates and checks, not by the schema.
"""

from __future__ import annotations

ROWS = {
    1: "no weights: required",
    2: "two sources of weights: exactly one",
    3: "engine and its settings disagree: unions are siblings here, so the wrong sibling is one too many or unknown",
    4: "engine in the wrong case: unknown field, and neither `vllm` nor `nim` is set",
    5: "engine, source of weights or served name changed on update: immutable",
    6: "image by tag: a digest is asked for",
    7: "digest too short, in upper case, or of another algorithm: 64 lower-case hexadecimal digits of SHA-256",
    10: "replicas -1, 2147483648, '2', 2.5: refused; 0: accepted",
    11: "GPU count 0, or not what tensor and pipeline parallelism multiply to: refused",
    15: "--trust-remote-code: reserved",
    16: "flags that Hermetic renders, with '=', with '_', abbreviated, dotted or short: reserved",
    17: "shell text: passed on as it is; newline, tab and NUL: refused",
    18: "credentials in the environment: reserved",
    19: "offline switches, proxies, loader and Python variables: reserved",
    20: "a variable twice: duplicate",
    21: "a Secret with '/' or '..' in its name, or with a namespace: refused",
    25: "folders '../../etc', absolute, empty, 5 kB, with outer spaces: refused; with emoji: accepted",
    37: "annotations for the load balancer: there is no field for them",
    39: "the whole internet, malformed networks, host bits as source range: refused; IPv6: accepted",
    40: "names from which no name of a Service or pod can be made: refused",
    44: "huge specs, 10,000 variables, unknown fields, null for required: refused",
    45: "YAML's own surprises (Off, 1e3, 0.32, no): a type error that says what to write",
}

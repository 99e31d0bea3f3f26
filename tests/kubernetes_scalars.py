"""Values as people type them without quotes, and what kubectl takes them for.

tests/controlplane/test_cli_kubernetes_yaml.py asks kubectl itself.
"""

from __future__ import annotations

SCALARS: tuple[tuple[str, object], ...] = (
    *((word, True) for word in ("y", "Y", "yes", "Yes", "YES", "true", "True", "TRUE", "on", "On", "ON")),
    *((word, False) for word in ("n", "N", "no", "No", "NO", "false", "False", "FALSE", "off", "Off", "OFF")),
    *((word, None) for word in ("", "~", "null", "Null", "NULL")),
    *((word, word) for word in ("yEs", "oN", "tRUE", "nULL", "nan", "inf", "NaN", "Infinity")),
    ("0", 0),
    ("-0", 0),
    ("+12", 12),
    ("-3", -3),
    ("1_000", 1000),
    ("017", 15),
    ("0o17", 15),
    ("0O17", 15),
    ("0x1F", 31),
    ("-0b11", -3),
    ("9223372036854775807", 9223372036854775807),
    ("09", 9.0),
    ("1e3", 1000.0),
    ("1E-2", 0.01),
    ("-.5", -0.5),
    (".5", 0.5),
    ("1.", 1.0),
    ("0.32", 0.32),
    ("1_0.5", 10.5),
    *(
        (word, word)
        for word in ("0.32.0", "16:30", "190:20:30", "2026-01-31", "2026-01-31T10:00:00Z", "1e", "0x", "0b2")
    ),
    *(
        (word, word)
        for word in ("1e999", "+", "-x", ".", "..", "1Gi", "500m", "10.0.0.0/8", "0o8", "++1", "1,000", "a b")
    ),
    ("'yes'", "yes"),
    ('"0x1F"', "0x1F"),
    ("!!str 1e3", "1e3"),
)

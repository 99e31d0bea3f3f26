"""Textbook estates: network isolated AKS clusters as Microsoft's documents make them, ARM and API server together.

No real cluster was copied. Each is the transcript of a documented set-up, hardened where the audit asks for it and a
platform team can do it, with its sources named. Each comes with the policy and the exceptions that such a team has to
write (docs/first-audit.md). Every one of them must reach Pass, and whatever is planted in one must be found.

    TEXTBOOK["managed-network-block"].azure        a new Estate for the stand-in for Azure
    TEXTBOOK["managed-network-block"].manifests    the objects of its API server
    TEXTBOOK["managed-network-block"].policy_file, .exceptions_file
"""

from testbed.textbook.estates import TEXTBOOK, TextbookEstate

__all__ = ["TEXTBOOK", "TextbookEstate"]

"""Where the converted deployment reads its weights: a claim, a share, or a claim to be named."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hermetic.conversion.outcomes import Note
from hermetic.errors import InputError


def weights_source(claim: str, share: str, name: str) -> tuple[Mapping[str, Any], tuple[Note, ...]]:
    """`spec.weights` and what is to be set in it.

    `claim` is CLAIM[/FOLDER], `share` ACCOUNT/SHARE[/FOLDER], of which at most one is given; `name` is the object's.
    Raises InputError for both, and for a form that is not one of these.
    """
    if claim and share:
        raise InputError("--claim and --share are two sources of weights", fix="give one of them")
    if share:
        account, _, remainder = share.partition("/")
        share_name, _, folder = remainder.partition("/")
        if not account or not share_name:
            raise InputError(
                f"--share '{share[:128]}' names no share of a storage account",
                fix="write it as ACCOUNT/SHARE/FOLDER: --share contosomodels/models/llama-3-1-8b",
            )
        return {"azureFiles": {"account": account, "share": share_name, **_folder(folder)}}, ()
    if claim:
        claim_name, _, folder = claim.partition("/")
        return {"persistentVolumeClaim": {"claimName": claim_name, **_folder(folder)}}, ()
    placeholder = f"{name}-weights"
    message = f"'{placeholder}' is a placeholder: name the claim with the staged model (--claim, or --share)"
    note = Note("set", "weights.persistentVolumeClaim.claimName", message)
    return {"persistentVolumeClaim": {"claimName": placeholder}}, (note,)


def _folder(folder: str) -> dict[str, str]:
    return {"folder": folder} if folder else {}

"""What can be wrong with weights: one word for programs, its meaning, and what to do about it."""

from __future__ import annotations

from hermetic.signing.explained import ExplainedWord

_COPY = "Copy the file again from where it was staged ('hermetic stage' reads only what is missing), and verify again."
_STAGE = "Stage the model again: 'hermetic stage SRC DEST' writes the manifest with the files."
_SIGN = "Sign the staged folder with the key that is trusted: 'hermetic sign DIR --key KEY'."
_TRY_AGAIN = "Look at the share and the network to it, then verify again; nothing was decided about the weights."


class WeightsReason(ExplainedWord):
    """The reason and its page. `is_unknown`: nothing was found wrong, but not everything could be read."""

    is_unknown: bool

    def __init__(self, value: str, meaning: str, remedy: str, is_unknown: bool = False) -> None:
        super().__init__(value, meaning, remedy)
        self.is_unknown = is_unknown

    @property
    def needs_human(self) -> bool:
        """Whether only a person can mend it: what could not be read is read again."""
        return not self.is_unknown

    # the manifest and its signature
    MANIFEST_ABSENT = "ManifestAbsent", "The folder holds no manifest, or no signature where one is asked for.", _STAGE
    MANIFEST_INVALID = (
        "ManifestInvalid",
        "The manifest or its bundle does not have the form of OpenSSF Model Signing v1.0, or contradicts itself.",
        _STAGE,
    )
    SIGNATURE_INVALID = (
        "SignatureInvalid",
        "The signature is not one of the given key over this manifest: one of the two was changed after signing.",
        _SIGN,
    )
    WRONG_KEY = "WrongKey", "The manifest is signed with another key than those that are trusted.", _SIGN
    CERTIFICATE_UNTRUSTED = (
        "CertificateUntrusted",
        "The certificate of the signature does not lead to a trusted root, or may not be used to sign.",
        _SIGN,
    )
    CERTIFICATE_EXPIRED = (
        "CertificateExpired",
        "A certificate of the signature is not valid at the present time of this machine.",
        "Sign again with a valid certificate, and check the clock of the machine that the message names.",
    )
    ROOT_DIGEST_MISMATCH = (
        "RootDigestMismatch",
        "The manifest is one of other weights than those whose root digest is pinned, or its entries are in another "
        "order, in which the root digest does not say which file has which content.",
        "Compare weights.integrity.digest with what 'hermetic stage' printed; stage those weights, or pin this digest.",
    )
    NAMES_NOT_COVERED = (
        "NamesNotCovered",
        "Only a root digest is given, and it does not cover the names of the files in a manifest of another tool.",
        "Verify with the public key as well, or write the manifest with 'hermetic stage' or 'hermetic manifest'.",
    )

    # the files
    DIGEST_MISMATCH = "DigestMismatch", "A file has other content than was listed: a flipped bit is enough.", _COPY
    SIZE_MISMATCH = "SizeMismatch", "A file is longer or shorter than was listed: most often its copy broke off.", _COPY
    FILE_MISSING = "FileMissing", "A file that is listed is not there.", _COPY
    FILE_NOT_LISTED = (
        "FileNotListed",
        "There is a file that the manifest does not list; engines read what lies beside the weights.",
        "Remove the file, or stage the model with it and sign it again.",
    )
    LINK_REFUSED = (
        "LinkRefused",
        "A symbolic link leads out of the folder, to nothing, to a folder, through another link or to a file that is "
        "not listed, or is there where a file is expected.",
        "Put the file in the place of the link; 'hermetic stage' follows the links of a Hugging Face snapshot.",
    )
    SPECIAL_FILE = "SpecialFile", "There is a device, a pipe or a socket; it was not opened.", "Remove it."
    CHANGED_WHILE_READING = (
        "ChangedWhileReading",
        "A file or link was changed or replaced while it was read.",
        "Find what writes to the share (it must be read-only for pods), and verify again.",
    )
    MODE_UNREADABLE = (
        "ModeUnreadable",
        "The mode of a file or folder does not let the user of a pod read it.",
        "chmod -R a+rX on the folder, from a machine that mounts the share with write access; or name the group that "
        "may read it in weights.supplementalGroups.",
    )

    # the content
    WEIGHTS_EMPTY = "WeightsEmpty", "The folder holds no file.", _STAGE
    SHARD_MISSING = (
        "ShardMissing",
        "The index of the weights names a shard that is not there.",
        "Download the model again on the connected machine, then stage it again.",
    )
    WEIGHTS_CORRUPT = (
        "WeightsCorrupt",
        "The header of a safetensors file, or the index, contradicts the file: cut short, overlapping tensors, holes.",
        "Download the file again on the connected machine, then stage it again.",
    )
    EXECUTABLE_CONTENT = (
        "ExecutableContent",
        "A file holds code that loading it runs: pickle, Python, or an archive that may hold either.",
        "Use weights in safetensors, or allow the file by its name with --allow NAME after reading it.",
    )
    REMOTE_CODE = (
        "RemoteCode",
        "The configuration names code of the model (auto_map) that the engine would import.",
        "Use a model that the engine supports, or allow its files by name with --allow NAME after reading them.",
    )
    REMOTE_CODE_ELSEWHERE = (
        "RemoteCodeElsewhere",
        "auto_map names code of another repository: an engine would download it, and cannot in a sealed cluster.",
        "Copy the named Python file beside config.json and remove the name of the repository with its '--'.",
    )
    CONFIGURATION_INVALID = (
        "ConfigurationInvalid",
        "A JSON file of the model cannot be read as such.",
        "Download the file again on the connected machine, or save it as the message says, then stage it again.",
    )
    CASE_COLLISION = (
        "CaseCollision",
        "Two names differ only in case or in Unicode form: on a share that does not tell them apart one is lost.",
        "Rename one of the files.",
    )
    NAME_REFUSED = (
        "NameRefused",
        "A name is no UTF-8, too long, too deep, or cannot be listed; or a file has the form of names.json.",
        "Rename the file; remove a second file of names, of a folder '.hermetic' inside of the model for example.",
    )
    TOO_MUCH = "TooMuch", "There is more than is read: files, or bytes of a header.", "Split or repair the model."

    # what could not be read: the verdict is Unknown
    READ_FAILED = "ReadFailed", "The share answered a read with an error.", _TRY_AGAIN, True
    TOO_SLOW = (
        "TooSlow",
        "The share delivers, and too slowly to finish in the time that is given.",
        "Raise the start-up budget (startupBudgetSeconds; --timeout of the command), or use a faster share.",
        True,
    )
    SHARE_HANGS = "ShareHangs", "The share stopped to answer.", _TRY_AGAIN, True
    DESTINATION_HANGS = (
        "DestinationHangs",
        "The share that weights are staged to stopped to answer.",
        "Look at that share and the network to it, then run the same command again.",
        True,
    )


WEIGHTS_REASONS: dict[str, WeightsReason] = {reason.value: reason for reason in WeightsReason}

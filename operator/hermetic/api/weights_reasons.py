"""What can be wrong with weights: one word for programs, its meaning, and what to do about it."""

from __future__ import annotations

from hermetic.signing.explained import ExplainedWord

_COPY = "Stage the file again from its source ('hermetic stage' reads only missing data), and verify again."
_STAGE = "Stage the model again: 'hermetic stage SRC DEST' writes the manifest with the files."
_SIGN = "Sign the staged folder with the key that is trusted: 'hermetic sign DIR --key KEY'."
_TRY_AGAIN = "Check the share and the network to it, then verify again. The verdict about the weights is still open."


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
    MANIFEST_ABSENT = "ManifestAbsent", "The folder has no manifest, or lacks a required signature.", _STAGE
    MANIFEST_INVALID = (
        "ManifestInvalid",
        "The manifest or its bundle does not have the form of OpenSSF Model Signing v1.0, or contradicts itself.",
        _STAGE,
    )
    SIGNATURE_INVALID = (
        "SignatureInvalid",
        "The signature does not match the given key and this manifest. One of them was changed after signing.",
        _SIGN,
    )
    WRONG_KEY = "WrongKey", "The manifest is signed with a key that is not trusted.", _SIGN
    CERTIFICATE_UNTRUSTED = (
        "CertificateUntrusted",
        "The certificate of the signature does not chain to a trusted root, or does not allow signing.",
        _SIGN,
    )
    CERTIFICATE_EXPIRED = (
        "CertificateExpired",
        "A certificate of the signature is not valid at the present time of this machine.",
        "Sign again with a valid certificate, and check the clock of the machine that the message names.",
    )
    ROOT_DIGEST_MISMATCH = (
        "RootDigestMismatch",
        "The manifest belongs to other weights than the pinned root digest. Or its entries are in an order in which "
        "the root digest does not bind content to files.",
        "Compare weights.integrity.digest with the output of 'hermetic stage'. Stage those weights, or pin this "
        "digest.",
    )
    NAMES_NOT_COVERED = (
        "NamesNotCovered",
        "Only a root digest is given. In a manifest of another tool, it does not cover the names of files.",
        "Verify with the public key as well, or write the manifest with 'hermetic stage' or 'hermetic manifest'.",
    )

    # the files
    DIGEST_MISMATCH = "DigestMismatch", "The content of a file differs from the manifest, by at least one bit.", _COPY
    SIZE_MISMATCH = (
        "SizeMismatch",
        "A file is longer or shorter than in the manifest. The usual cause is an interrupted copy.",
        _COPY,
    )
    FILE_MISSING = "FileMissing", "A listed file does not exist.", _COPY
    FILE_NOT_LISTED = (
        "FileNotListed",
        "The folder has a file that the manifest does not list. Engines read all files in the folder.",
        "Remove the file, or stage the model with it and sign it again.",
    )
    LINK_REFUSED = (
        "LinkRefused",
        "A symbolic link leads out of the folder, to a missing target, to a folder, through another link, or to an "
        "unlisted file. Or the manifest lists a file at the link's path.",
        "Replace the link by the file. 'hermetic stage' follows the links of a Hugging Face snapshot.",
    )
    SPECIAL_FILE = "SpecialFile", "The folder has a device, a pipe or a socket. Hermetic did not open it.", "Remove it."
    CHANGED_WHILE_READING = (
        "ChangedWhileReading",
        "A file or link was changed or replaced during the read.",
        "Find the process that writes to the share (it must be read-only for pods), and verify again.",
    )
    MODE_UNREADABLE = (
        "ModeUnreadable",
        "The mode of a file or folder does not allow the user of a pod to read it.",
        "Run 'chmod -R a+rX' on the folder, from a machine that mounts the share with write access. Or name the group "
        "with read access in weights.supplementalGroups.",
    )

    # the content
    WEIGHTS_EMPTY = "WeightsEmpty", "The folder is empty.", _STAGE
    SHARD_MISSING = (
        "ShardMissing",
        "The index of the weights, or the names of the other shards, name a shard that does not exist.",
        "Download the model again on the connected machine, then stage it again.",
    )
    NO_WEIGHTS = (
        "WeightsAbsent",
        "The folder has no weights, neither safetensors nor another format.",
        "Name the folder with the weights, or download them. 'git lfs pull' replaces the pointers of a clone.",
    )
    MODEL_BELOW = (
        "ModelInSubfolder",
        "The folder contains models in subfolders: it is the root of a download cache, or the parent of a model. An "
        "engine reads config.json at the top.",
        "Name the folder of the model: 'hermetic stage SRC/FOLDER DEST', with the folder that the message names.",
    )
    POINTER_NOT_RESOLVED = (
        "PointerNotResolved",
        "A file is a pointer of git-lfs, git-xet or git-annex in place of the content.",
        "Run 'git lfs install && git lfs pull' in the clone on the connected machine, or download the model with "
        "'hf download', then stage it again.",
    )
    DOWNLOAD_FAILED = (
        "DownloadFailed",
        "A file is the page or the message of a server in place of the content: a login page, a proxy, an error.",
        "Download the file again on the connected machine, with access to the model, then stage it again.",
    )
    DOWNLOAD_INCOMPLETE = (
        "DownloadIncomplete",
        "A download tool has not finished this file, because its temporary file still exists.",
        "Finish the download on the connected machine with the same tool, then stage it again.",
    )
    TOKENIZER_INVALID = (
        "TokenizerInvalid",
        "A tokenizer file is truncated, empty, or not a tokenizer.",
        "Download the file again on the connected machine, then stage it again. Exclude a file that no engine reads "
        "with --exclude.",
    )
    TEMPLATE_INVALID = (
        "TemplateInvalid",
        "A chat template is empty, or is not a Jinja template. The engine could not answer chat requests.",
        "Download the file again on the connected machine, then stage it again.",
    )
    CREDENTIAL = (
        "CredentialInWeights",
        "A file contains a credential, or has the name of one. Every pod and every reader of the share could use it.",
        "Remove the credential from the file and revoke it, or exclude the file with --exclude. Then stage the model "
        "again.",
    )
    WEIGHTS_CORRUPT = (
        "WeightsCorrupt",
        "The header of a safetensors or GGUF file, or the index, contradicts the file: truncated data, overlapping "
        "tensors, holes, missing tensors.",
        "Download the file again on the connected machine, then stage it again.",
    )
    EXECUTABLE_CONTENT = (
        "ExecutableContent",
        "A file contains code that runs when it is loaded: pickle, Python, or an archive that may contain either.",
        "If the folder also has safetensors files, no engine needs the file: exclude it with --exclude. Otherwise use "
        "weights in safetensors, or allow the file with --allow NAME (weights.integrity.allow) after reading it.",
    )
    REMOTE_CODE = (
        "RemoteCode",
        "The configuration names code of the model (auto_map), and the engines have no built-in class for it. They "
        "exit without --trust-remote-code, which Hermetic never passes.",
        "Use a model that the engine supports. If your release of the engine has the model, allow the file of its "
        "code: --allow NAME.py, and weights.integrity.allow.",
    )
    REMOTE_CODE_ELSEWHERE = (
        "RemoteCodeElsewhere",
        "auto_map names code of another repository, and the engines have no built-in class for it. They exit without "
        "--trust-remote-code, which Hermetic never passes.",
        "If your release of the engine has the model, remove auto_map from the configuration, or allow the file of "
        "its code: --allow NAME.py, and weights.integrity.allow. Otherwise use a model that the engine supports.",
    )
    ADAPTER_UNSUPPORTED = (
        "AdapterUnsupported",
        "The folder of an adapter has no adapter_config.json, or a field of it that engines do not load: vLLM does not "
        "start, and the answers of SGLang would lack it.",
        "Train the adapter as a plain LoRA without what the message names, or merge it into the model "
        "(merge_and_unload of PEFT) and stage the merged model. Where your release of the engine loads it: "
        "--allow adapter_config.json, and weights.integrity.allow.",
    )
    CONFIGURATION_INVALID = (
        "ConfigurationInvalid",
        "A JSON file of the model is not valid JSON.",
        "Download the file again on the connected machine, or save it as the message says, then stage it again.",
    )
    CASE_COLLISION = (
        "CaseCollision",
        "Two names differ only in case or in Unicode form. A share that treats them as equal loses one of the files.",
        "Rename one of the files.",
    )
    NAME_REFUSED = (
        "NameRefused",
        "A name is not UTF-8, too long, too deep, or cannot be listed. Or a file has the form of names.json.",
        "Rename the file. Remove a second file of names, for example of a folder '.hermetic' inside the model.",
    )
    TOO_MUCH = (
        "TooMuch",
        "The number of files, or the size of a header, exceeds the limit.",
        "Split or repair the model.",
    )

    # what could not be read: the verdict is Unknown
    READ_FAILED = "ReadFailed", "The share answered a read with an error.", _TRY_AGAIN, True
    TOO_SLOW = (
        "TooSlow",
        "The share is too slow to finish in the given time.",
        "Raise the start-up budget (startupBudgetSeconds; --timeout of the command), or use a faster share.",
        True,
    )
    SHARE_HANGS = "ShareHangs", "The share stopped responding.", _TRY_AGAIN, True
    DESTINATION_HANGS = (
        "DestinationHangs",
        "The share at the destination of staging stopped responding.",
        "Check that share and the network to it, then run the same command again.",
        True,
    )


WEIGHTS_REASONS: dict[str, WeightsReason] = {reason.value: reason for reason in WeightsReason}

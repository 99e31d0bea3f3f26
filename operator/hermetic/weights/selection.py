"""Which files of a source belong to the model.

Left out is what version control, download tools and desktops leave beside the files of a model, what holds credentials
by its name, and what `--exclude` names. All rules are about paths: content is read elsewhere. A folder that is left out
is left out with everything below it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from fnmatch import fnmatchcase, translate

from hermetic.weights.entries import FOLDER

CREDENTIALS, DOWNLOAD_TOOL = "may hold credentials", "download tool"
MOST_RECORDED = 1000
"""Paths that are shown; further ones are left out too."""

_LEFTOVERS = {
    # `.git` is a file in a submodule and in a worktree. model-signing leaves out .git, .github, .gitattributes and
    # .gitignore by default (`ignore_git_paths` of its hashing configuration).
    "version control": (
        ".git", ".github", ".gitlab", ".gitattributes", ".gitignore", ".gitmodules", ".gitkeep", ".lfsconfig",
        ".hg", ".hgignore", ".hgtags", ".svn", ".bzr", ".jj", ".dvc", ".dvcignore",
    ),
    # `.cache/huggingface` beside the files of `hf download --local-dir`, `.huggingface` before huggingface_hub 0.25;
    # `.msc`, `.mv`, `.mdl` and `._____temp` of ModelScope; aria2, azcopy, rclone, rsync and browsers.
    DOWNLOAD_TOOL: (
        ".huggingface", ".msc", ".mv", ".mdl", "._____temp", ".locks", ".lock", "*.incomplete", "*.aria2",
        "*.crdownload", "*.part", "*.partial", ".azdownload-*", ".rsync-partial", ".~tmp~", "wget-log", "wget-log.*",
        ".wget-hsts", ".*.hermetic-partial", "cachedir.tag",
    ),
    "desktop, editor or file system": (
        ".ds_store", "._*", "__macosx", ".spotlight-v100", ".trashes", ".fseventsd", ".trash-*", "$recycle.bin",
        "system volume information", "thumbs.db", "desktop.ini", "__pycache__", ".ipynb_checkpoints", ".idea",
        ".vscode", ".venv", ".pytest_cache", ".mypy_cache", ".ruff_cache", "*.swp", "*~", ".nfs0*", "lost+found",
        ".snapshot",
    ),
}  # fmt: skip
_CREDENTIALS = (
    ".netrc", "_netrc", ".git-credentials", ".env", ".env.*", "*.env", ".envrc", ".npmrc", ".yarnrc", ".pypirc",
    "pip.conf", ".condarc", ".pgpass", ".my.cnf", ".boto", ".s3cfg", ".dockercfg", ".dockerconfigjson", ".htpasswd",
    ".vault-token", ".terraformrc", "*.tfstate", "*.tfstate.*", "*.tfvars", "rclone.conf", "kaggle.json", "token",
    "stored_tokens", ".token", "hf_token", "hf_token.*", "huggingface_token", "huggingface_token.*", "credentials",
    "credentials.*", "application_default_credentials.json", "client_secret*.json", "service-account*.json",
    "service_account*.json", "kubeconfig", "*.kubeconfig", "azureprofile.json", "accesstokens.json",
    "msal_token_cache.*", "service_principal_entries.*", "id_rsa*", "id_dsa*", "id_ecdsa*", "id_ed25519*", "*.pem",
    "*.key", "*.ppk", "*.p12", "*.pfx", "*.jks", "*.keystore", "*.kdbx", ".bash_history", ".zsh_history",
    ".python_history", ".ssh", ".gnupg", ".aws", ".azure", ".kube", ".docker", ".gcloud", ".ngc", ".oci", ".kaggle",
    ".config", ".modelscope",
)  # fmt: skip
_OF_CACHE = frozenset({"huggingface", "modelscope", "kaggle", "pip", "torch", "git", "uv"})
"""Folders of `.cache` that download tools write; an engine's own cache may be beside them."""


def _any_of(patterns: Iterable[str]) -> re.Pattern[str]:
    return re.compile("|".join(translate(pattern) for pattern in patterns))


_RULES = ((CREDENTIALS, _any_of(_CREDENTIALS)), *((why, _any_of(names)) for why, names in _LEFTOVERS.items()))


def why_not_of_a_model(path: str) -> str | None:
    """Why a file or folder of this path is no part of a model, by its own name; None where it may be one.

    Names are compared without regard to case. What Hermetic itself writes, compile caches included, is always a part.
    """
    folder, _, name = path.rpartition("/")
    if path == FOLDER or path.startswith(f"{FOLDER}/"):
        return None
    name = name.casefold()
    if name in _OF_CACHE and folder.rpartition("/")[2].casefold() == ".cache":
        return DOWNLOAD_TOOL
    return next((why for why, names in _RULES if names.match(name)), None)


def is_credential(path: str) -> bool:
    """Whether a path, or a folder on it, is one of a file with credentials."""
    parts = path.split("/")
    return any(
        why_not_of_a_model("/".join(parts[:count])) == CREDENTIALS for count in range(1, len(parts) + 1)
    )  # fmt: skip


@dataclass(slots=True)
class Selection:
    """What is left out of one source. `left_out`: (path, reason) of what was met so far, folders with a "/" at the end.

    `excludes`: patterns of `--exclude`, compared with the path and with the name; "*" matches "/" too, as in the
    patterns of `hf download`.
    """

    excludes: tuple[str, ...] = ()
    left_out: dict[str, str] = field(default_factory=dict)
    matched: set[str] = field(default_factory=set)
    """Patterns that matched something."""

    def leaves_out(self, path: str, *, is_folder: bool) -> bool:
        """Whether it is left out, where the folders above it are not. It is noted in `left_out`."""
        why = self._excluded(path) or why_not_of_a_model(path)
        if why is None:
            return False
        shown = path.encode(errors="surrogateescape").decode(errors="replace")
        if len(self.left_out) < MOST_RECORDED:
            self.left_out[f"{shown}/" if is_folder else shown] = why
        return True

    def hides(self, path: str, *, is_folder: bool) -> bool:
        """Whether it, or a folder above it, is left out."""
        parts = path.split("/")
        above = ("/".join(parts[:count]) for count in range(1, len(parts)))
        return any(self.leaves_out(folder, is_folder=True) for folder in above) or self.leaves_out(
            path, is_folder=is_folder
        )

    def recorded(self) -> tuple[tuple[str, str], ...]:
        """(path, reason), in the order of paths."""
        return tuple(sorted(self.left_out.items()))

    def _excluded(self, path: str) -> str | None:
        name = path.rpartition("/")[2]
        for pattern in self.excludes:
            if fnmatchcase(path, pattern) or fnmatchcase(name, pattern):
                self.matched.add(pattern)
                return f"--exclude {pattern}"
        return None

"""Names of files that hold code: pickles, Python, libraries, and archives that may hold either."""

from __future__ import annotations

_PICKLE = (
    ".bin",
    ".pt",
    ".pt2",
    ".pth",
    ".ptl",
    ".pkl",
    ".pickle",
    ".p",
    ".pck",
    ".sav",
    ".cloudpickle",
    ".pdparams",
    ".pdopt",
    ".pth.txt",
    ".pkl.txt",
    ".pickle.txt",
    ".ckpt",
    ".joblib",
    ".dill",
    ".npy",
    ".npz",
    ".h5",
    ".hdf5",
    ".keras",
)
_CODE = (
    ".py",
    ".pyc",
    ".pyo",
    ".pyd",
    ".pyw",
    ".pyz",
    ".so",
    ".dll",
    ".dylib",
    ".exe",
    ".sh",
    ".bat",
    ".ps1",
    ".ipynb",
    ".pb",
)
_LIBRARY = ".so."
"""In the name of a library with its version, 'libx.so.1'."""
_ARCHIVE = (
    ".zip",
    ".tar",
    ".gz",
    ".tgz",
    ".tbz2",
    ".txz",
    ".bz2",
    ".xz",
    ".lzma",
    ".lz4",
    ".zst",
    ".7z",
    ".rar",
    ".nemo",
    ".mar",
    ".whl",
    ".egg",
)
_KINDS = {
    **dict.fromkeys(_PICKLE, "a pickle, or a form that may hold one"),
    **dict.fromkeys(_CODE, "code"),
    **dict.fromkeys(_ARCHIVE, "an archive"),
}


def kind_of_code(name: str) -> str | None:
    """What a file of this name, in lower case, holds that is code; None where its name says nothing of it."""
    if _LIBRARY in name:
        return "code"
    before, dot, ending = name.rpartition(".")
    longer = f".{before.rpartition('.')[2]}.{ending}"
    return _KINDS.get(f"{dot}{ending}") or (_KINDS.get(longer) if "." in before else None)

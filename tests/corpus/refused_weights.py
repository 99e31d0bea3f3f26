"""Folders, shares and claims that nothing may be read from."""

from __future__ import annotations

from typing import Any

from tests.corpus.cases import ABSOLUTE, OBJECT_NAME, RELATIVE, REQUIRED, SHARE, Invalid, case


def _folder(what: str, folder: str, says: str = RELATIVE, **more: Any) -> Invalid:
    return case(f"folder {what}", f"{SHARE}.folder", folder, says, rows=(25,), **more)


WEIGHTS = (
    _folder("upwards", "../../etc"),
    _folder("upwards for a shell", ".\\./secret", "must be a folder that the Azure Files driver takes", prints=None),
    *(
        _folder(f"with {character}", f"a{character}b", "must be a folder that the Azure Files driver takes")
        for character in ":*?<>|"
    ),
    _folder("with a quote", 'a"b', "must be a folder that the Azure Files driver takes", prints=None),
    _folder("that ends with a dot", "a/b./c", "must be a folder that the Azure Files driver takes"),
    _folder("with a part that ends with a space", "a /b", "must be a folder that the Azure Files driver takes"),
    _folder("upwards inside", "a/../b"),
    _folder("absolute", "/etc"),
    _folder("empty", "", "must have at least 1 character", server_says="should be at least 1 chars long", prints=None),
    _folder("of 5 kB", "x" * 5000, "must have at most 1024 characters", server_says="Too long"),
    _folder("with a space behind", "a "),
    _folder("with a space before", " a"),
    _folder("with a hard space behind", "a\u00a0", prints=None),
    _folder("with a newline behind", "a\n"),
    _folder("ending in a slash", "a/"),
    _folder("of one dot", "."),
    case(
        "NFS path relative",
        "spec.weights",
        {"nfs": {"server": "nas", "path": "export"}},
        ABSOLUTE,
        blames="spec.weights.nfs.path",
        prints="export",
        rows=(25,),
    ),
    case(
        "NFS path root",
        "spec.weights",
        {"nfs": {"server": "nas", "path": "/"}},
        "must have at least 2 characters",
        server_says="should be at least 2 chars long",
        blames="spec.weights.nfs.path",
        rows=(25,),
    ),
    case(
        "baked path upwards",
        "spec.weights",
        {"bakedImage": {"path": "/a/../b"}},
        ABSOLUTE,
        blames="spec.weights.bakedImage.path",
        prints="/a/../b",
        rows=(25,),
    ),
    case("share in capitals", f"{SHARE}.share", "Models", "must be a share name: 3 to 63"),
    case("share with two dashes", f"{SHARE}.share", "a--b", "must be a share name: 3 to 63"),
    case("share missing", f"{SHARE}.share", None, **REQUIRED, rows=(44,)),
    case("account with a dash", f"{SHARE}.account", "a-b", "must be a storage account name: 3 to 24"),
    case("server with a scheme", f"{SHARE}.server", "nfs://nas", "must be a host name or an IPv4 address"),
    case(
        "mount option rw",
        f"{SHARE}.mountOptions",
        ["rw"],
        "must be one of nconnect=1..16",
        blames=f"{SHARE}.mountOptions[0]",
        prints="rw",
    ),
    case(
        "17 connections",
        f"{SHARE}.mountOptions",
        ["nconnect=17"],
        "must be one of nconnect=1..16",
        blames=f"{SHARE}.mountOptions[0]",
        prints="nconnect=17",
    ),
    case(
        "resource group by id",
        f"{SHARE}.resourceGroup",
        "/subscriptions/x",
        "must be the name of a resource group, not its id",
    ),
    case(
        "encryption in quotes",
        f"{SHARE}.encryptInTransit",
        "true",
        "must be true or false, without quotes",
        server_says="must be of type boolean",
        prints=None,
    ),
    case(
        "claim of a namespace",
        "spec.weights",
        {"persistentVolumeClaim": {"claimName": "ns/claim"}},
        OBJECT_NAME,
        blames="spec.weights.persistentVolumeClaim.claimName",
        prints="ns/claim",
        rows=(21,),
    ),
    case(
        "facts with more windows than layers",
        "spec.weights.facts",
        {
            "modelType": "llama",
            "parameterBytes": 1,
            "attention": {
                "layers": 2,
                "heads": 1,
                "keyValueHeads": 1,
                "headDimension": 1,
                "hiddenSize": 1,
                "slidingWindow": {"tokens": 1, "layers": 3},
            },
        },
        "`slidingWindow.layers` must not exceed `layers`",
        blames="spec.weights.facts.attention.slidingWindow.layers",
    ),
    case(
        "facts of no bytes",
        "spec.weights.facts",
        {"modelType": "llama", "parameterBytes": 0},
        "must be greater than or equal to 1",
        server_says="should be greater than or equal to 1",
        blames="spec.weights.facts.parameterBytes",
        prints="0",
    ),
    case(
        "facts of a family in two words",
        "spec.weights.facts",
        {"modelType": "a b", "parameterBytes": 1},
        "must be one word",
        blames="spec.weights.facts.modelType",
        prints="a b",
    ),
    *(
        case(
            f"compile caches {fault}",
            "spec.weights.caches",
            [{"engine": "vllm", "version": "0.32.0", "gpu": "H100-80GB", "tensorParallelSize": 2, **wrong}],
            says,
            server_says=server,
            blames=f"spec.weights.caches[0].{next(iter(wrong))}",
            prints=prints,
        )
        for fault, wrong, says, server, prints in (
            ("of another folder", {"version": "0.32.0/../.."}, "must be a release of the engine", "", "0.32.0/../.."),
            ("of a GPU in two words", {"gpu": "H100 NVL"}, "must be one word", "", "H100 NVL"),
            ("of a NIM", {"engine": "nim"}, "must be 'vllm' or 'sglang'", "supported values", "nim"),
            (
                "over no GPU",
                {"tensorParallelSize": 0},
                "must be greater than or equal to 1",
                "should be greater than or equal to 1",
                "0",
            ),
            (
                "in 257 stages",
                {"pipelineParallelSize": 257},
                "must be less than or equal to 256",
                "should be less than or equal to 256",
                "257",
            ),
        )
    ),
    case(
        "17 compile caches",
        "spec.weights.caches",
        [{"engine": "vllm", "version": "0.32.0", "gpu": "H200", "tensorParallelSize": count} for count in range(1, 18)],
        "must have at most 16",
        server_says="must have at most 16 items",
    ),
    case(
        "a root digest without its algorithm",
        "spec.weights.integrity",
        {"digest": "ab" * 32},
        "must be a root digest as 'hermetic stage' prints it",
        blames="spec.weights.integrity.digest",
    ),
    case(
        "an integrity policy that does not exist",
        "spec.weights.integrity",
        {"policy": "Enforce"},
        "must be 'Require', 'Warn' or 'Off'",
        server_says="Unsupported value",
        blames="spec.weights.integrity.policy",
    ),
    case(
        "a private key for the weights",
        "spec.weights.integrity",
        {"publicKey": "-----BEGIN PRIVATE KEY-----"},
        "must be a PEM public key",
        blames="spec.weights.integrity.publicKey",
    ),
    case(
        "an option as an allowed file",
        "spec.weights.integrity",
        {"allow": ["--report-only"]},
        "must be a path in the folder, or the name of a file",
        blames="spec.weights.integrity.allow[0]",
    ),
    case(
        "integrity of a baked image",
        "spec.weights",
        {"bakedImage": {"path": "/models/phi-4"}, "integrity": {"digest": f"sha256:{'ab' * 32}"}},
        "must be left out with `bakedImage` and `imageVolume`",
        blames="spec.weights.integrity",
    ),
    *(
        case(
            f"facts of a NIM profile with {fault}",
            "spec.weights.facts",
            {"modelType": "nim", "parameterBytes": 1, "nimProfiles": [{"name": "vllm-bf16-tp2", **wrong}]},
            says,
            blames=f"spec.weights.facts.nimProfiles[0].{next(iter(wrong))}",
            prints=next(iter(wrong.values())),
        )
        for fault, wrong, says in (
            ("a name in two words", {"name": "vllm bf16"}, "must be the name of a profile"),
            ("a short id", {"id": "abc"}, "must be 64 lower-case hex digits"),
        )
    ),
    *(
        case(
            f"weights for the group {group}",
            "spec.weights.supplementalGroups",
            [2000, group],
            says,
            server_says=f"should be {says.removeprefix('must be ')}",
            blames="spec.weights.supplementalGroups[1]",
            prints=str(group),
        )
        for group, says in (
            (0, "must be greater than or equal to 1"),
            (2**31, "must be less than or equal to 2147483647"),
        )
    ),
    case(
        "weights for nine groups",
        "spec.weights.supplementalGroups",
        list(range(1, 10)),
        "must have at most 8",
        server_says="must have at most 8 items",
    ),
)

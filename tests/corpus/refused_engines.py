"""Images, arguments and variables that an engine may not be given."""

from __future__ import annotations

from tests.corpus.cases import PINNED, RESERVED_FLAG, RESERVED_KEY, RESERVED_VARIABLE, UNKNOWN, VLLM, Invalid, case
from tests.corpus.manifests import (
    DIGEST,
    VLLM_IMAGE,
    changed,
    nim_on_azure_files,
    sglang_with_everything_said,
    vllm_on_azure_files,
)

_WITH_ARGUMENT = changed(vllm_on_azure_files(), {f"{VLLM}.extraArgs": ["--seed=1"]})
_WITH_VARIABLE = changed(vllm_on_azure_files(), {f"{VLLM}.extraEnv": [{"name": "A", "value": ""}]})


def _flag(argument: str, *rows: int, says: str = RESERVED_FLAG) -> Invalid:
    quoted = {"prints": None} if '"' in argument else {}  # which every judge prints with escapes of its own
    return case(
        f"flag {argument[:40]!r}", f"{VLLM}.extraArgs[0]", argument, says, rows=rows, base=_WITH_ARGUMENT, **quoted
    )


def _variable(name: str, *rows: int, says: str = RESERVED_VARIABLE) -> Invalid:
    return case(f"variable {name!r}", f"{VLLM}.extraEnv[0].name", name, says, rows=rows, base=_WITH_VARIABLE)


def _image(what: str, image: str, *rows: int) -> Invalid:
    return case(f"image {what}", f"{VLLM}.image", image, PINNED, rows=rows)


IMAGES = (
    _image("by tag", "contoso.azurecr.io/vllm/vllm-openai:latest", 6),
    _image("by nothing", "contoso.azurecr.io/vllm", 6),
    _image("without registry", f"vllm@{DIGEST}", 6),
    _image("of 63 digits", VLLM_IMAGE[:-1], 7),
    _image("of 65 digits", VLLM_IMAGE + "0", 7),
    _image("in upper-case digits", f"contoso.azurecr.io/vllm@sha256:{'3F1C' * 16}", 7),
    _image("of sha512", f"contoso.azurecr.io/vllm@sha512:{'3f1c' * 32}", 7),
    _image("with a newline", VLLM_IMAGE + "\n", 7),
    _image("with a scheme", f"https://contoso.azurecr.io/vllm@{DIGEST}", 6),
    case(
        "image volume by tag",
        "spec.weights",
        {"imageVolume": {"reference": "r.io/m:v1"}},
        PINNED,
        blames="spec.weights.imageVolume.reference",
        rows=(6,),
        prints="r.io/m:v1",
    ),
)

ARGUMENTS = (
    case(
        "code beside weights on a share",
        f"{VLLM}.extraArgs",
        ["--trust-remote-code"],
        "must not hold '--trust-remote-code' with weights on a share",
        rows=(15,),
        prints="--trust-remote-code",
    ),
    _flag("--trust-remote-code=true", 15),
    _flag("--trust_remote_code", 15),
    _flag("--trust-remote", 15),
    _flag("--host=0.0.0.0", 16),
    _flag("--port", 16),
    _flag("--model=x", 16),
    _flag("--mod", 16),
    _flag("--download-dir=/x", 16),
    _flag("--download_dir", 16),
    _flag("--allowed-media-domains", 16),
    _flag("--allowed_media=*", 16),
    _flag("--served-model-n", 16),
    _flag("--kv-transfer-config.kv_role=x", 16),
    _flag("--disable-offline-docs", 16),
    _flag("-tp", 16),
    _flag("-tp=4", 16),
    _flag("-t2", 16),
    _flag("-n", 16),
    _flag("-dpa=1.2.3.4", 16),
    _flag("--api-key=secret", 16),
    _flag("--chat-template=https://x/y", 16, says="must not hold a URL: nothing may be fetched in a sealed cluster"),
    _flag("a\nb", 17, says="must not hold control characters"),
    _flag("a\x00b", 17, says="must not hold control characters"),
    _flag("a\tb", 17, says="must not hold control characters"),
    *(
        _flag(argument, 15, says=RESERVED_KEY)
        for argument in (
            "--structured-outputs-config.reasoning_parser_plugin=/weights/x.py",
            "--structured-outputs-config.reasoning-parser-plugin",
            '--structured-outputs-config={"reasoning_parser_plugin": "/weights/x.py"}',
            '{"reasoning_parser_plugin":"/weights/x.py"}',
            '{"a": 1, "code_revision" : "main"}',
            '{"trust_remote_code":true}',
            '{"otlp_traces_endpoint":"collector"}',
            '{"reasoning_parser_plu\\u0067in":"/weights/x.py"}',
        )
    ),
    *(_flag(argument, 15) for argument in ("--log-config-file", "--scheduler-cls=a.B", "--logging-config={}")),
    case(
        "argument empty",
        f"{VLLM}.extraArgs",
        [""],
        "must have at least 1 character",
        server_says="should be at least 1 chars long",
        blames=f"{VLLM}.extraArgs[0]",
    ),
    case(
        "arguments in one string",
        f"{VLLM}.extraArgs",
        "--seed 1",
        "must be a list",
        server_says="must be of type array",
        prints=None,
    ),
    case(
        "argument null",
        f"{VLLM}.extraArgs",
        [None],
        "must be a string",
        server_says="must be of type string",
        blames=f"{VLLM}.extraArgs[0]",
    ),
    *(
        case(
            f"SGLang argument {argument!r}",
            "spec.engine.sglang.extraArgs",
            [argument],
            RESERVED_FLAG,
            base=sglang_with_everything_said(),
            blames="spec.engine.sglang.extraArgs[0]",
            rows=(16,),
            prints=argument,
        )
        for argument in (
            "--host=0.0.0.0",
            "--tokenizer-worker-num=2",
            "--admin-api-key=known",
            "--trust_remote",
            "--custom-w",
            "--enable-lora",
            "--disaggregation-m=prefill",
            "--dist-init-addr=10.0.0.1:5000",
            "--nccl-p",
            "--hicache-storage-backend=mooncake",
            "--log-requests-target",
        )
    ),
    case(
        "SGLang code beside weights on a share",
        "spec.engine.sglang.extraArgs",
        ["--trust-remote-code"],
        "must not hold '--trust-remote-code' with weights on a share",
        base=sglang_with_everything_said(),
        prints="--trust-remote-code",
    ),
    case(
        "SGLang name with a colon",
        "spec.model.name",
        "llama:adapter",
        "`model.name` must not hold ':' with engine `sglang`",
        base=sglang_with_everything_said(),
        prints="llama:adapter",
    ),
    case(
        "SGLang GPUs",
        "spec.accelerator.count",
        3,
        "must equal `engine.sglang.tensorParallelSize` times `pipelineParallelSize`",
        base=sglang_with_everything_said(),
        prints=None,
    ),
    case(
        "SGLang version",
        "spec.engine.sglang.version",
        "latest",
        "must be an SGLang release such as '0.5.23'",
        base=sglang_with_everything_said(),
    ),
    case(
        "NIM argument reserved",
        "spec.engine.nim.extraArgs",
        ["--hf-token=x"],
        RESERVED_FLAG,
        base=nim_on_azure_files(),
        blames="spec.engine.nim.extraArgs[0]",
        rows=(16,),
        prints="--hf-token=x",
    ),
    case(
        "NIM code beside the weights",
        "spec.engine.nim.extraArgs",
        ["--trust-remote-code"],
        RESERVED_FLAG,
        base=nim_on_azure_files(),
        blames="spec.engine.nim.extraArgs[0]",
        rows=(15,),
        prints="--trust-remote-code",
    ),
)

VARIABLES = (
    *(_variable(name, 18) for name in ("HF_TOKEN", "NGC_API_KEY", "HUGGING_FACE_HUB_TOKEN")),
    *(_variable(name, 18) for name in ("AWS_SECRET_ACCESS_KEY", "AZURE_CLIENT_SECRET", "my_password", "WandbToken")),
    *(_variable(name, 19) for name in ("Https_Proxy", "socks_PROXY", "PYTHONUSERBASE", "LD_AUDIT", "CC")),
    _variable("VLLM_LOGGING_CONFIG_PATH", 19),
    *(_variable(name, 19) for name in ("HF_HUB_OFFLINE", "HTTP_PROXY", "https_proxy", "LD_PRELOAD", "PYTHONPATH")),
    _variable("A-B", says="must be a C identifier"),
    _variable("1A", says="must be a C identifier"),
    _variable("A\n", 17, says="must be a C identifier"),
    case(
        "value with NUL",
        f"{VLLM}.extraEnv[0].value",
        "a\x00",
        "must not hold control characters",
        base=_WITH_VARIABLE,
        rows=(17,),
        prints=None,
    ),
    case(
        "value with a URL",
        f"{VLLM}.extraEnv[0].value",
        "https://evil.example/",
        "must not hold a URL",
        base=_WITH_VARIABLE,
    ),
    case(
        "value as a number",
        f"{VLLM}.extraEnv[0].value",
        1,
        "must be a string; put it in quotes",
        server_says="must be of type string",
        base=_WITH_VARIABLE,
        prints=None,
    ),
    case(
        "variable from a Secret",
        f"{VLLM}.extraEnv[0].valueFrom",
        {"secretKeyRef": {"name": "s", "key": "k"}},
        **UNKNOWN,
        base=_WITH_VARIABLE,
        rows=(18,),
    ),
    case(
        "variable twice",
        f"{VLLM}.extraEnv",
        [{"name": "A", "value": "1"}, {"name": "A"}],
        "must not stand here twice",
        server_says="Duplicate value",
        blames=f"{VLLM}.extraEnv[1]",
        prints="A",
        rows=(20,),
    ),
)

"""What a tenant may say to an engine: reviewed names, and values that name no address, no code and no weights."""

from __future__ import annotations

import time
from typing import Any

import pytest
from pydantic import ValidationError

from hermetic.api.configuration import Configuration
from hermetic.api.engine_variables import EnvironmentVariable
from hermetic.api.modeldeployment import ModelDeploymentSpec
from hermetic.api.reserved_flags import reserved_variable
from hermetic.api.spec_reasons import SpecReason
from hermetic.engines.vllm.tables import TABLES
from hermetic.plan.engine_settings import engine_settings_are_allowed
from hermetic.plan.gate_results import HOLDS, Blocks
from hermetic.plan.gates import GATES
from tests.scenarios import NIM_IMAGE, VLLM_IMAGE, a_baked_model, a_nim_model, a_share_model, changed
from tests.snapshots import a_snapshot, spec_of


def verdict_of(spec: ModelDeploymentSpec, **policy: Any) -> str:
    """ "" when the gate lets it pass, else its message."""
    verdict = engine_settings_are_allowed(spec, a_snapshot(policy=Configuration.model_validate(policy)))
    if verdict == HOLDS:
        return ""
    assert isinstance(verdict, Blocks)
    assert verdict.reason is SpecReason.ENGINE_SETTING_NOT_ALLOWED
    return verdict.message


def vllm_spec(*arguments: str, version: str = "0.33.0", **variables: str) -> ModelDeploymentSpec:
    engine = {
        "image": VLLM_IMAGE,
        "version": version,
        "extraArgs": list(arguments),
        "extraEnv": [{"name": name, "value": value} for name, value in variables.items()],
    }
    return spec_of(a_share_model(engine={"vllm": engine}))


def nim_spec(*arguments: str, line: str = "2.1", **variables: str) -> ModelDeploymentSpec:
    engine = {
        "image": NIM_IMAGE,
        "line": line,
        "extraArgs": list(arguments),
        "extraEnv": [{"name": name, "value": value} for name, value in variables.items()],
    }
    return spec_of(changed(a_nim_model(), engine={"nim": engine}))


@pytest.mark.parametrize(
    "argument",
    [
        '--hf-overrides={"auto_map": {"AutoConfig": "configuration_x.XConfig"}}',
        '--hf-overrides={"text_config": {"auto_map": {"AutoModel": "someone/other--modeling_x.XModel"}}}',
        "--hf-overrides.auto_map.AutoConfig=configuration_x.XConfig",
        "--hf_overrides.text_config.auto_map={}",
        '--override-generation-config={"custom_generate": "someone/other"}',
        '--hf-overrides={"list": [{"auto_map": {}}]}',
    ],
)
@pytest.mark.parametrize("version", ["0.24.0", "0.33.0"])
def test_no_flag_names_code_in_a_part_of_the_configuration(argument: str, version: str):
    assert "which names code to import" in verdict_of(vllm_spec(argument, version=version))
    assert verdict_of(vllm_spec('--hf-overrides={"rope_theta": 10000}', version=version)) == ""


@pytest.mark.parametrize("value", ["weights/x.py", "./weights/x.py", "tmp/x.py", "home/hermetic/.cache/x.py"])
def test_a_path_that_starts_nowhere_is_judged_as_one_from_the_root(value: str):
    allowed = {"engine": "vllm", "arguments": ["--profiler-config"], "namespaces": ["*"]}
    verdict = verdict_of(vllm_spec(f"--profiler-config={value}"), engineSettings=[allowed])
    assert "only files of the serving image may be named here" in verdict
    assert verdict_of(vllm_spec("--profiler-config=opt/x.py"), engineSettings=[allowed]) == ""


@pytest.mark.parametrize("spec", [vllm_spec, nim_spec])
def test_a_key_takes_no_flag_for_its_value(spec):
    """The engine would: the path, judged for a flag that takes any, would become another of its values."""
    behind = ("--disable-access-log-for-endpoints", "b=/proc/self/environ")
    modules = ("--lora-target-modules", "q_proj")
    assert "without a value" in verdict_of(spec(*modules, "--response-role.k", *behind))
    assert not verdict_of(spec(*modules, "--response-role", "k", *behind))


def test_it_is_one_of_the_gates():
    assert engine_settings_are_allowed in GATES


# Each of these was accepted when names were refused by a list: code, files and addresses from the weights or outside.
VARIABLES = {
    "PYTHONPYCACHEPREFIX": "/weights/pyc",
    "PYTHONWARNINGS": "all:0:antigravity.x:0:0",
    "BROWSER": "/bin/sh /weights/run.sh #%s",
    "OPENSSL_CONF": "/weights/openssl.cnf",
    "CUDA_INJECTION64_PATH": "/weights/x.so",
    "VLLM_CUDA_COMPATIBILITY_PATH": "/weights/compat",
    "VLLM_NCCL_INCLUDE_PATH": "/weights/inc",
    "NCCL_CONF_FILE": "/weights/nccl.conf",
    "NVCC_PREPEND_FLAGS": "-ccbin /weights/cc",
    "FLASHINFER_NVCC": "/weights/nvcc",
    "FLASHINFER_CUBINS_REPOSITORY": "/weights/cubins",
    "OTEL_EXPORTER_OTLP_LOGS_ENDPOINT": "x",
    "RAY_ADDRESS": "evil.example:6379",
    "S3_ENDPOINT_URL": "x",
    "AWS_ENDPOINT_URL": "x",
    "SSL_CERT_FILE": "/weights/ca.pem",
    "LMCACHE_REMOTE_URL": "lm",
    "TRITON_PTXAS_BLACKWELL_PATH": "/weights/ptxas",
    "SSLKEYLOGFILE": "/tmp/keys",
    "GCC_EXEC_PREFIX": "/weights/",
    "TORCH_EXTENSIONS_DIR": "/weights/ext",
    "VLLM_DP_MASTER_IP": "203.0.113.9",
    "SAGEMAKER_MODEL_PATH": "/weights",
    "CUSTOM_SCRIPT_FILENAME": "evil.py",
    "CUSTOM_FASTAPI_PING_HANDLER": "evil.py:ping",
    "CUSTOM_FASTAPI_MIDDLEWARE_THROTTLE": "evil",
    "NVIDIA_VISIBLE_DEVICES": "all",
    "VLLM_GPU_NIC_PCIE_MAPPING": "a=b",
    "VLLM_NIC_SELECTION_VARS": "LD_PRELOAD",
    "VLLM_LOGGING_STREAM": "os",
    "VLLM_MODEL_REDIRECT_PATH": "x",
    "A_NAME_THAT_NO_LIST_KNOWS": "1",
}


@pytest.mark.parametrize("name", sorted(VARIABLES))
@pytest.mark.parametrize("engine", ["vllm", "nim"])
def test_a_variable_that_is_not_on_the_list_is_refused(engine, name):
    make = vllm_spec if engine == "vllm" else nim_spec
    if reserved_variable(name):
        with pytest.raises(ValidationError, match="reserved variable"):
            make(**{name: VARIABLES[name]})
        return
    verdict = verdict_of(make(**{name: VARIABLES[name]}))
    assert verdict.startswith(f"`engine.{engine}.extraEnv`")
    assert f"'{name}'" in verdict


@pytest.mark.parametrize(
    "name",
    [
        "NIM_FORCE_TRUST_REMOTE_CODE",
        "NIM_TRUST_REMOTE_CODE",
        "NIM_TRUST_CUSTOM_CODE",
        "NIM_TOOL_PARSER_PLUGIN",
        "NIM_CUSTOM_GUIDED_DECODING_BACKENDS",
        "NIM_PEFT_SOURCE",
        "NIM_REASONING_PARSER_PLUGIN",
        "NIM_VLLM_ARGS",
        "NIM_MANIFEST_ALLOW_UNSAFE",
        "NIM_ENGINE_ARGS",
        "NIM_MIDDLEWARE_CONFIG_PATH",
        "NIM_NGINX_DIR",
        "SGLANG_PLUGINS",
    ],
)
@pytest.mark.parametrize("line", ["1.15", "2.0", "2.1"])
def test_variables_of_a_nim_that_are_not_on_the_list_are_refused(line, name):
    if reserved_variable(name):
        with pytest.raises(ValidationError, match="reserved variable"):
            nim_spec(line=line, **{name: "1"})
        return
    assert f"`engine.nim.extraEnv` holds '{name}', which is not allowed" in verdict_of(
        nim_spec(line=line, **{name: "1"})
    )


@pytest.mark.parametrize(
    "argument",
    [
        "--enable-custom-logit-processor",
        "--model-path=x",
        "--dist-init-addr=x",
        "--nccl-port=1",
        "--admin-api-key=x",
        "--tokenizer-path=/weights/x",
        "--preferred-sampling-params={}",
        "--custom-weight-loader=mod.fn",
        "--warmups=x",
        "--x",
        "stray",
        "--mem-fraction-stat=0.5",
    ],
)
def test_arguments_of_a_nim_that_are_not_on_the_lists_are_refused(argument):
    spec = nim_spec(argument, line="2.1")
    assert "`engine.nim.extraArgs` holds" in verdict_of(spec)


@pytest.mark.parametrize("name", ["NIM_PEFT_SOURCE", "NIM_TRUST_REMOTE_CODE", "NIM_TOOL_PARSER_PLUGIN"])
def test_a_variable_of_a_nim_that_loads_code_is_told_as_such_and_not_as_unreviewed(name):
    verdict = verdict_of(nim_spec(**{name: "x"}))
    assert f"'{name}', which is not allowed: it names code" in verdict
    assert "did you mean" not in verdict


def test_flags_of_sglang_are_for_lines_that_may_be_sglang():
    assert verdict_of(nim_spec("--mem-fraction-static=0.8", "--enable-prefix-caching", line="2.1")) == ""
    assert "did you mean" not in verdict_of(nim_spec("--mem-fraction-static=0.8", line="2.0"))
    assert "'--mem-fraction-static'" in verdict_of(nim_spec("--mem-fraction-static=0.8", line="2.0"))


@pytest.mark.parametrize(
    "arguments",
    [
        ("--grpc-port=9000",),
        ("--grpc-p", "9000"),
        ("--enable-prompt-embeds",),
        ("--enable-mm-embeds",),
        ("--trust-request-chat-template",),
        ("--trust-request-mm-kwargs",),
        ("--distributed-executor-backend=some.module.Executor",),
        ("--distributed-executor-backend", "ray"),
        ("--compilation-config", '{"backend":"os.system"}'),
        ("--compilation-config.backend", "os.system"),
        ("--compilation_config.inductor_passes.x=os.system",),
        ("-cc", '{"inductor_passes": {"x": "os.system"}}'),
        ("--compilation-config", "[1]"),
        ("--kv-offloading-backend", "lmcache"),
        ("--profiler-config", '{"profiler":"torch"}'),
        ("--weight-transfer-config", '{"backend":"nccl"}'),
        ("--load-format", "tensorizer"),
        ("--load-format=ipc_cache",),
        ("--model-loader-extra-config", '{"tensorizer_uri":"/weights/x"}'),
        ("--speculative-config", '{"method":"custom_class","model":"/weights/x"}'),
        ("--speculative-config", '{"model":"my_module.MyProposer"}'),
        ("--speculative-config.method", '"custom_class"'),
        ("--speculative-config.model=my_module.MyProposer",),
        ("--speculative-config", '{"draft_load_config": {"load_format": "tensorizer"}}'),
        ("--spec-method", "custom_class"),
        ("--spec-model", "meta-llama/draft"),
        ("--tokenizer", "org/name"),
        ("--additional-config", "{}"),
    ],
)
def test_a_flag_that_loads_code_calls_out_or_listens_is_refused(arguments):
    assert verdict_of(vllm_spec(*arguments)).startswith("`engine.vllm.extraArgs`"), arguments


ADDRESSES = (
    "https://evil.example/",
    "s3://bucket/key",
    "hf://org/model",
    "file:/weights/x",
    "S3:bucket",
    "evil.example:443",
    "redis:6379",
    "10.0.0.4",
    "10.0.0.4:80",
    "[fd00::1]:80",
    "a=evil.example:8080/x",
    '{"x": ["evil.example:443"]}',
    '{"x": "evil.ex\\u0061mple:443"}',
    "//evil.example/x",
    "svc.namespace.svc.cluster.local:80",
)


@pytest.mark.parametrize("value", [address for address in ADDRESSES if "://" not in address])
def test_no_value_is_an_address(value):
    assert "`engine.vllm.extraEnv`: the value of 'VLLM_LOGGING_PREFIX'" in verdict_of(
        vllm_spec(VLLM_LOGGING_PREFIX=value)
    )
    assert verdict_of(nim_spec(NIM_LOG_LEVEL=value))


@pytest.mark.parametrize("value", [address for address in ADDRESSES if "://" not in address and "\\u" not in address])
def test_no_value_of_an_argument_is_an_address(value):
    assert "the value of '--response-role'" in verdict_of(vllm_spec(f"--response-role={value}"))
    assert "the value of '--response-role'" in verdict_of(vllm_spec("--response-role", value))


def test_the_api_server_refuses_urls_in_variables_as_well():
    with pytest.raises(ValueError, match="URL"):
        vllm_spec(VLLM_LOGGING_LEVEL="https://evil.example/")


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("VLLM_CUDA_COMPATIBILITY_PATH", "/weights/compat"),
        ("VLLM_CUDA_COMPATIBILITY_PATH", "/usr/local/cuda/compat:/weights/compat"),
        ("VLLM_CUDA_COMPATIBILITY_PATH", "/usr/../weights/compat"),
        ("VLLM_CUDA_COMPATIBILITY_PATH", "/./weights//compat"),
        ("VLLM_CUDA_COMPATIBILITY_PATH", "/proc/self/cwd"),
        ("VLLM_CUDA_COMPATIBILITY_PATH", "/tmp/x"),
        ("NCCL_TOPO_FILE", "/weights/topo.xml"),
        ("NCCL_DEBUG_FILE", "/weights/log"),
        ("NCCL_DEBUG_FILE", "/etc/passwd"),
        ("NCCL_DEBUG_FILE", "/tmp/../etc/x"),
        ("TIKTOKEN_ENCODINGS_BASE", "/tls/tls.key"),
        ("OMP_NUM_THREADS", "/weights/x"),
        ("VLLM_LOGGING_LEVEL", "~root/x"),
        ("VLLM_GC_DEBUG", '{"x": "/weights"}'),
    ],
)
def test_no_value_points_where_it_should_not_read(name, value):
    assert f"the value of '{name}'" in verdict_of(vllm_spec(**{name: value}))


def test_the_weights_of_a_baked_image_are_weights_too():
    model = a_baked_model()
    path = model["spec"]["weights"]["bakedImage"]["path"]
    model["spec"]["engine"]["vllm"]["extraEnv"] = [{"name": "NCCL_TOPO_FILE", "value": f"{path}/x"}]
    assert "the value of 'NCCL_TOPO_FILE'" in verdict_of(spec_of(model))


ALLOWED_VARIABLES = {
    "VLLM_LOGGING_LEVEL": "DEBUG",
    "OMP_NUM_THREADS": "8",
    "PYTORCH_CUDA_ALLOC_CONF": "expandable_segments:True,max_split_size_mb:128",
    "CUBLAS_WORKSPACE_CONFIG": ":4096:8",
    "NCCL_IB_HCA": "=mlx5_0:1,mlx5_1:1",
    "NCCL_DEBUG_FILE": "/tmp/nccl.%h.%p",
    "NCCL_TOPO_FILE": "/opt/microsoft/ndv5-topo.xml",
    "TIKTOKEN_ENCODINGS_BASE": "/weights/encodings",
    "VLLM_CUDA_COMPATIBILITY_PATH": "/usr/local/cuda/compat",
    "VLLM_SYSTEM_START_DATE": "2026-11-01",
    "VLLM_CPU_OMP_THREADS_BIND": "0-31|32-63",
    "TZ": "Europe/Berlin",
    "VLLM_GC_DEBUG": '{"top_objects": 5}',
    "CUDA_VISIBLE_DEVICES": "",
}
ALLOWED_ARGUMENTS = (
    ("--enable-prefix-caching",),
    ("--no-enable-prefix-caching",),
    ("--seed", "1"),
    ("-O3",),
    ("-qfp8",),
    ("--reasoning-parser=deepseek_r1",),
    ("--chat-template", "/vllm-workspace/examples/tool_chat_template_llama3.1_json.jinja"),
    ("--chat-template", "{% for m in messages %}{{ m.role ~ ': ' ~ 4 / 2 }}</s>{% endfor %}"),
    ("--tokenizer", "/weights/tokenizer"),
    ("--default-mm-loras", '{"audio": "/weights/adapters/audio"}'),
    ("--speculative-config", '{"method": "eagle3", "model": "/weights/draft", "num_speculative_tokens": 3}'),
    ("--speculative-config", '{"method": "ngram", "num_speculative_tokens": 3, "prompt_lookup_max": 4}'),
    ("--speculative-config.num-speculative-tokens", "3"),
    ("--compilation-config", "3"),
    ("--compilation-config", '{"cudagraph_mode": "FULL", "pass_config": {"fuse_act_quant": true}}'),
    ("--compilation-config.pass_config.fuse_act_quant", "true"),
    ("--load-format", "runai_streamer"),
    ("--model-loader-extra-config", '{"concurrency": 16}'),
    ("--mm-processor-device", "cuda:1"),
    ("--disable-access-log-for-endpoints", "/health,/metrics"),
    ("--root-path=/models/llama",),
    ("--root-path", "/vllm"),
    ("--root-path=",),
    ("--reasoning-config", '{"reasoning_end_str": "</think>"}'),
    ("--hf-overrides", '{"rope_scaling": {"rope_type": "yarn", "factor": 4.0}}'),
    ("--limit-mm-per-prompt", '{"image": 10}'),
    ("--override-generation-config", '{"temperature": 0.5}'),
    ("--distributed-executor-backend", "mp"),
)


# The status of a POST to /v1/chat/completions without the key, as the check of the key of vLLM 0.32.0 and its router
# answer with each: 200 for '/', '/v' and '/v1/'.
@pytest.mark.parametrize("prefix", ["/", "/v", "/v1", "/v1/", "/v1/chat/comp", "/i", "/inference", "/c", "/v2/"])
@pytest.mark.parametrize("spelled", ["--root-path={}", "--root_path={}", "--root-path {}"])
def test_no_prefix_of_the_paths_takes_the_key_off_them(prefix, spelled):
    assert "without asking for the key" in verdict_of(vllm_spec(*spelled.format(prefix).split(" ")))


def test_what_people_set_is_allowed():
    assert verdict_of(vllm_spec(**ALLOWED_VARIABLES)) == ""
    common = {name: value for name, value in ALLOWED_VARIABLES.items() if not name.startswith("VLLM_")}
    assert verdict_of(nim_spec(line="1.15", NIM_KVCACHE_PERCENT="0.9", NIM_JSONL_LOGGING="1", **common)) == ""
    assert verdict_of(nim_spec(line="2.1", **ALLOWED_VARIABLES)) == ""


@pytest.mark.parametrize("arguments", ALLOWED_ARGUMENTS, ids=lambda arguments: arguments[0])
def test_arguments_that_people_set_are_allowed(arguments):
    assert verdict_of(vllm_spec(*arguments)) == ""


def test_a_name_of_another_release_is_refused():
    assert verdict_of(vllm_spec(version="0.33.0", VLLM_USE_DIRECT_DCP_A2A="1")) == ""
    assert "VLLM_USE_DIRECT_DCP_A2A" in verdict_of(vllm_spec(version="0.24.0", VLLM_USE_DIRECT_DCP_A2A="1"))


def test_the_message_names_field_reason_and_fix():
    verdict = verdict_of(vllm_spec(VLLM_LOGING_LEVEL="INFO"))
    assert verdict.startswith(
        "`engine.vllm.extraEnv` holds 'VLLM_LOGING_LEVEL', which is not allowed: it is not on the reviewed list for "
        "this engine; did you mean 'VLLM_LOGGING_LEVEL'?"
    )
    assert "`engineSettings`: - {engine: vllm, variables: [VLLM_LOGING_LEVEL], namespaces: [" in verdict
    assert "it would open a second way into the pod" in verdict_of(vllm_spec("--grpc-port=1"))


def test_the_platform_team_may_allow_further_names():
    line = {"engine": "vllm", "variables": ["HPC_X"], "arguments": ["--profiler-config"], "namespaces": ["inference"]}
    spec = vllm_spec("--profiler-config", "{}", HPC_X="/opt/hpcx")
    assert verdict_of(spec, engineSettings=[line]) == ""
    assert verdict_of(spec, engineSettings=[{**line, "namespaces": ["*"]}]) == ""
    assert verdict_of(spec, engineSettings=[{**line, "namespaces": ["other"]}])
    assert verdict_of(spec, engineSettings=[{**line, "engine": "nim"}])
    assert verdict_of(vllm_spec(HPC_X="/weights/hpcx"), engineSettings=[line])
    assert verdict_of(vllm_spec(HPC_X="evil.example:443"), engineSettings=[line])


@pytest.mark.parametrize("names", [{"variables": ["LD_PRELOAD"]}, {"arguments": ["--trust-remote-code"]}, {}])
def test_the_configuration_cannot_allow_what_is_reserved(names):
    with pytest.raises(ValueError, match="must"):
        Configuration.model_validate({"engineSettings": [{"engine": "vllm", "namespaces": ["*"], **names}]})


UNITS = (
    "/",
    ":",
    "a.",
    "[",
    '{"',
    "a:1 ",
    "..",
    "-",
    "1.1.",
    "\\",
    "a/../",
    "0.0.0.0 ",
    "a ",
    "x",
    "{",
    "[ ",
    "a,/b",
    "ab:1,",
)


@pytest.mark.parametrize("unit", UNITS)
def test_evaluation_takes_time_in_proportion_to_the_length_of_values(unit):
    """Sixty-four of each, as long as the API server takes them; a pattern that backtracks takes the square or more."""
    quarter, full = (processor_seconds(with_long_values(unit, length)) for length in (1024, 4096))
    assert full < 10 * quarter, f"{quarter * 1000:.1f} ms, and {full * 1000:.1f} ms for values four times as long"
    assert full < 0.06, f"{full * 1000:.1f} ms"


def with_long_values(unit: str, length: int) -> ModelDeploymentSpec:
    variables = [
        EnvironmentVariable.model_construct(name="VLLM_LOGGING_LEVEL", value=(unit * length)[:length])
        for _ in range(64)
    ]
    arguments = ["--chat-template=" + (unit * length)[: length // 4 - 24] for _ in range(64)]
    spec = vllm_spec()
    assert spec.engine.vllm is not None
    vllm = spec.engine.vllm.model_copy(update={"extra_env": variables, "extra_args": arguments})
    return spec.model_copy(update={"engine": spec.engine.model_copy(update={"vllm": vllm})})


def processor_seconds(spec: ModelDeploymentSpec) -> float:
    """The least of five evaluations; the lists are read before the first one."""
    verdict_of(spec)
    times = []
    for _ in range(5):
        started = time.process_time()
        verdict_of(spec)
        times.append(time.process_time() - started)
    return min(times)


def test_every_supported_release_is_judged():
    for minor in TABLES.supported:
        assert verdict_of(vllm_spec("--enable-prefix-caching", version=f"{minor}.0", VLLM_LOGGING_LEVEL="INFO")) == ""


def test_no_value_of_a_variable_is_repeated():
    for value in ("/weights/a-long-secret", "evil.example.com:443", "~root/a-long-secret", "/tmp/../a-long-secret"):
        assert value not in verdict_of(vllm_spec(VLLM_LOGGING_LEVEL=value))
        assert "a-long-secret" not in verdict_of(vllm_spec(VLLM_LOGGING_LEVEL=value))

"""What model servers are configured to call, and the tokens that they hold."""

from __future__ import annotations

from testbed.kubernetes_plants.pieces import (
    OUTSIDE,
    closed_namespace,
    container,
    gpu_container,
    manifest,
    put,
    put_pod,
    variable,
)
from testbed.kubernetes_plants.plant import Change, Manifest, Manifests, plant

HUB = "Hugging Face Hub: environment variables"


def _plant(name: str, title: str, change: Change, source: str, severity: str = "medium") -> None:
    change.__doc__ = title
    plant("k8s-outside-endpoint", severity, source, name=name)(change)


def _variable(name: str, value: str) -> Change:
    return lambda manifests: put_pod(manifests, of=gpu_container(manifests, variable(name, value)))


def _argument(text: str) -> Change:
    return lambda manifests: put_pod(manifests, of=gpu_container(manifests, args=["serve", text]))


def _spec(spec: Manifest) -> Change:
    return lambda manifests: put_pod(manifests, spec=spec)


def _field(**fields: Manifest) -> Change:
    return lambda manifests: put_pod(manifests, of=container(manifests, **fields))


_plant(
    "mirror_of_a_model_hub",
    "A model server is configured with another hub.",
    _variable("HF_ENDPOINT", "https://hf-mirror.example.com"),
    HUB,
)
_plant(
    "index_of_packages",
    "A model server is configured with an index of packages.",
    _variable("PIP_INDEX_URL", "https://user:secret@pypi.example.com/simple"),
    "pip: environment variables",
)
_plant(
    "collector_of_telemetry",
    "A model server sends its telemetry outside.",
    _variable("OTEL_EXPORTER_OTLP_ENDPOINT", "collector.example.com:4317"),
    "OpenTelemetry: OTLP exporter",
)
_plant(
    "address_in_any_variable",
    "A variable of any name holds a public address.",
    _variable("CALLBACK", "http://203.0.113.7:8080/done"),
    "Kubernetes: environment variables",
)
_plant(
    "model_from_a_bucket",
    "A model server loads its weights from a bucket outside.",
    _argument("s3://weights/llama"),
    "vLLM: loading models with Run:ai model streamer",
)
_plant(
    "address_in_an_argument",
    "A model server is configured with an address outside by an argument.",
    _argument("--otlp-traces-endpoint=grpc://collector.example.com:4317"),
    "vLLM: engine arguments",
)
_plant(
    "resolver_of_the_pods_own",
    "A pod asks a public resolver.",
    _spec({"dnsPolicy": "None", "dnsConfig": {"nameservers": ["203.0.113.53"]}}),
    "Kubernetes: Pod's DNS config",
)
_plant(
    "alias_of_a_public_address",
    "A pod takes a name for a public address.",
    _spec({"hostAliases": [{"ip": "203.0.113.7", "hostnames": ["hub.internal"]}]}),
    "Kubernetes: HostAliases",
)
_plant(
    "repository_that_the_kubelet_clones",
    "A volume is cloned from a repository outside.",
    _spec({"volumes": [{"name": "code", "gitRepo": {"repository": "https://git.example.com/x"}}]}),
    "Kubernetes: gitRepo volumes",
)
_plant(
    "probe_that_calls_outside",
    "A probe makes the kubelet call a host outside.",
    _field(livenessProbe={"httpGet": {"host": "203.0.113.7", "port": 443}}),
    "Kubernetes: Configure probes",
    "high",
)
_plant(
    "hook_that_calls_outside",
    "A hook makes the kubelet call a host outside.",
    _field(lifecycle={"preStop": {"httpGet": {"host": "out.example.com", "port": 80}}}),
    "Kubernetes: Container lifecycle hooks",
    "high",
)


@plant("k8s-model-token", "medium", "Microsoft Entra Workload ID on AKS")
def token_for_a_cloud(manifests: Manifests) -> str:
    """A model server has a token that Microsoft Entra ID takes."""
    token = {"serviceAccountToken": {"audience": "api://AzureADTokenExchange", "path": "token"}}
    volume = {"name": "azure-identity-token", "projected": {"sources": [token]}}
    return put_pod(manifests, of=gpu_container(manifests), spec={"volumes": [volume]})


@plant("k8s-model-token", "low", "Kubernetes: Configure service accounts for pods")
def token_for_the_api_server(manifests: Manifests) -> str:
    """A model server has a token for the API server."""
    volume = {"name": "kube-api-access-x", "projected": {"sources": [{"serviceAccountToken": {"path": "token"}}]}}
    return put_pod(manifests, of=gpu_container(manifests), spec={"volumes": [volume]})


@plant("k8s-model-token", "medium", HUB)
def key_to_a_model_hub_as_a_file(manifests: Manifests) -> str:
    """A model server has the key to a model hub as a file."""
    volume = {"name": "hub", "secret": {"secretName": "hf-token"}}
    return put_pod(manifests, of=gpu_container(manifests), spec={"volumes": [volume]})


def settings(manifests: Manifests, **data: str) -> Manifest:
    """A ConfigMap as the source of all variables of a container."""
    put(manifests, manifest("v1", "ConfigMap", "settings", closed_namespace(manifests), data=data))
    return {"configMapRef": {"name": "settings"}}


@plant("k8s-outside-endpoint", "medium", "Kubernetes: Configure a Pod to use a ConfigMap")
def hub_in_a_config_map(manifests: Manifests) -> str:
    """A model server takes the address of its hub from a ConfigMap."""
    source = settings(manifests, ENDPOINT=f"https://{OUTSIDE}")
    return put_pod(manifests, of=gpu_container(manifests, envFrom=[{**source, "prefix": "HF_"}]))


@plant("k8s-proxy-env", "high", "Kubernetes: Configure a Pod to use a ConfigMap")
def proxy_in_a_config_map(manifests: Manifests) -> str:
    """A pod takes its proxy from a key of a ConfigMap."""
    settings(manifests, out="http://10.9.9.9:3128")
    reference = {"configMapKeyRef": {"name": "settings", "key": "out"}}
    return put_pod(manifests, of=container(manifests, env=[{"name": "HTTPS_PROXY", "valueFrom": reference}]))


@plant("k8s-outside-endpoint", "medium", "Kubernetes: Secrets", verdict="Unknown")
def hub_in_a_secret(manifests: Manifests) -> str:
    """A pod takes the address of its hub from a Secret."""
    reference = {"secretKeyRef": {"name": "hub", "key": "address"}}
    return put_pod(manifests, of=container(manifests, env=[{"name": "HF_ENDPOINT", "valueFrom": reference}]))

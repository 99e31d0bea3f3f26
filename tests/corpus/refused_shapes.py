"""Names, numbers, types and sizes."""

from __future__ import annotations

from functools import reduce

from tests.corpus.cases import ENDPOINT, GPUS, NAME, REQUIRED, UNKNOWN, VLLM, case
from tests.corpus.manifests import ABSENT, changed, vllm_on_azure_files

NUMBERS = (
    case(
        "replicas -1",
        "spec.replicas",
        -1,
        "must be greater than or equal to 0",
        server_says="should be greater than or equal to 0",
        rows=(10,),
    ),
    case(
        "replicas 257",
        "spec.replicas",
        257,
        "must be less than or equal to 256",
        server_says="should be less than or equal to 256",
    ),
    case(
        "replicas 2147483648",
        "spec.replicas",
        2147483648,
        "must be less than or equal to 256",
        server_says="should be less than or equal to 256",
        rows=(10,),
    ),
    case(
        "autoscaling from zero",
        "spec.autoscaling",
        {"minReplicas": 0, "maxReplicas": 4},
        "must be greater than or equal to 1",
        server_says="should be greater than or equal to 1",
        blames="spec.autoscaling.minReplicas",
        prints="0",
    ),
    case(
        "autoscaling with bounds in the wrong order",
        "spec.autoscaling",
        {"minReplicas": 5, "maxReplicas": 4},
        "must be at most `maxReplicas`",
        blames="spec.autoscaling.minReplicas",
    ),
    case(
        "autoscaling by a queue that the API server writes as 1k",
        "spec.autoscaling",
        {"maxReplicas": 4, "queuedRequests": 1000},
        "must be less than or equal to 999",
        server_says="should be less than or equal to 999",
        blames="spec.autoscaling.queuedRequests",
        prints="1000",
    ),
    *(
        case(
            f"a cache in the memory of the node of {memory or 'nothing'}",
            "spec.kvCacheOffload",
            {"memory": memory},
            "must be a whole number of GiB from '1Gi' to '9999Gi', such as '64Gi'",
            blames="spec.kvCacheOffload.memory",
            prints=memory or None,
        )
        for memory in ("64", "0Gi", "1.5Gi", "64GiB", "1Ti", "-1Gi", "")
    ),
    case(
        "replicas in quotes",
        "spec.replicas",
        "2",
        "must be an integer, without quotes",
        server_says="must be of type integer",
        rows=(10,),
        prints=None,
    ),
    case(
        "replicas 2.5",
        "spec.replicas",
        2.5,
        "must be a",
        server_says="must be of type integer",
        rows=(10,),
        prints=None,
    ),
    case(
        "replicas true", "spec.replicas", True, "must be an integer", server_says="must be of type integer", rows=(10,)
    ),
    case(
        "GPU count 0",
        "spec.accelerator.count",
        0,
        "must be greater than or equal to 1",
        server_says="should be greater than or equal to 1",
        rows=(11,),
    ),
    case(
        "3 GPUs, tensor parallel 2",
        f"{VLLM}.tensorParallelSize",
        2,
        GPUS,
        base=changed(vllm_on_azure_files(), {"spec.accelerator.count": 3}),
        blames="spec.accelerator.count",
        rows=(11,),
    ),
    case(
        "3 GPUs, 2 stages",
        f"{VLLM}.pipelineParallelSize",
        2,
        GPUS,
        base=changed(vllm_on_azure_files(), {"spec.accelerator.count": 3}),
        blames="spec.accelerator.count",
        rows=(11,),
    ),
    *(
        case(
            f"several slices of {resource}",
            "spec.accelerator",
            {"resource": resource, "count": 2},
            "must have a `count` of 1: engines do not divide a model over slices of a GPU (MIG)",
            blames="spec.accelerator.resource",
            prints=resource,
        )
        for resource in ("nvidia.com/mig-1g.10gb", "nvidia.com/mig-3g.47gb.me")
    ),
    case("1 GPU, 2 stages", f"{VLLM}.pipelineParallelSize", 2, GPUS, blames="spec.accelerator.count", rows=(11,)),
    case(
        "utilization as a fraction",
        f"{VLLM}.gpuMemoryUtilizationPercent",
        0.92,
        "must be a",
        server_says="must be of type integer",
        prints=None,
    ),
    case(
        "utilization 99",
        f"{VLLM}.gpuMemoryUtilizationPercent",
        99,
        "must be less than or equal to 98",
        server_says="should be less than or equal to 98",
    ),
    case(
        "port 80",
        f"{ENDPOINT}.port",
        80,
        "must be greater than or equal to 1024",
        server_says="should be greater than or equal to 1024",
    ),
    case(
        "budget of a second",
        "spec.startupBudgetSeconds",
        1,
        "must be greater than or equal to 60",
        server_says="should be greater than or equal to 60",
    ),
    case(
        "evidence of a second",
        "spec.isolation.maxEvidenceAgeSeconds",
        1,
        "must be greater than or equal to 300",
        server_says="should be greater than or equal to 300",
    ),
    case(
        "half a CPU as a float",
        "spec.resources.cpu",
        0.5,
        "must be a string",
        server_says="must be of type integer,string",
        prints=None,
    ),
    *(
        case(f"a quantity of {amount}", f"spec.resources.{field}", amount, "must be a quantity such as '16Gi'")
        for field, amount in (("cpu", "0.5m"), ("cpu", "1.25m"), ("cpu", "0.0001"), ("memory", "1.5m"))
    ),
    case("more CPUs than the API server counts", "spec.resources.cpu", "9" * 20, "must be at most 1024"),
    case("more CPUs than a machine has", "spec.resources.cpu", 1025, "must be at most 1024"),
    *(
        case(f"{amount} of {field}", f"spec.resources.{field}", amount, "must be at most 64Ti")
        for field in ("memory", "sharedMemory", "scratch")
        for amount in ("65Ti", "70368744177664001m")
    ),
    case("CPUs below zero", "spec.resources.cpu", -1, "must be a quantity such as '16Gi'"),
    case("memory in words", "spec.resources.memory", "16 GB", "must be a quantity such as '16Gi', '1500Mi' or '4'"),
)

OTHERS = (
    case("name of 47 letters", "metadata.name", "a" * 47, NAME, rows=(40,)),
    case("name of 64 letters", "metadata.name", "a" * 64, NAME, rows=(40,)),
    case("name starting with a digit", "metadata.name", "3-llama", NAME, rows=(40,)),
    case("name with a dot", "metadata.name", "llama.8b", NAME, rows=(40,)),
    case("name ending in a dash", "metadata.name", "llama-", NAME, rows=(40,)),
    case("served name with spaces", "spec.model.name", "my model", "must be a model name as clients send it"),
    case("served name with a newline", "spec.model.name", "m\n", "must be a model name as clients send it", rows=(17,)),
    case(
        "alias twice",
        "spec.model.aliases",
        ["a", "a"],
        "must not stand here twice",
        server_says="Duplicate value",
        blames="spec.model.aliases[1]",
        prints="a",
    ),
    case(
        "resource of another vendor",
        "spec.accelerator.resource",
        "cpu",
        "must be 'nvidia.com/gpu', 'nvidia.com/gpu.shared', 'nvidia.com/mig-<profile>', 'amd.com/gpu' or a partition",
    ),
    case(
        "a policy of the checks of GPUs that does not exist",
        "spec.accelerator.preflight",
        {"policy": "Enforce"},
        "must be 'Require', 'Warn' or 'Off'",
        server_says="Unsupported value",
        blames="spec.accelerator.preflight.policy",
    ),
    case("another device of a vendor", "spec.accelerator.resource", "nvidia.com/nic", "must be 'nvidia.com/gpu'"),
    *(
        case(f"partition {mode}", "spec.accelerator.resource", f"amd.com/{mode}", "must be 'nvidia.com/gpu'")
        for mode in ("xpx_nps4", "spx_nps2", "dpx_nps4", "qpx_nps8")
    ),
    case(
        "port 0 of the Service",
        "spec.endpoint.servicePort",
        0,
        "must be greater than or equal to 1",
        server_says="greater than or equal",
    ),
    case("CPU limit of megacores", "spec.resources.cpuLimit", "1M", "must be at most 1024"),
    case("disk limit without a unit", "spec.resources.ephemeralStorageLimit", "30", "must be a whole number of Mi"),
    case("disk limit of petabytes", "spec.resources.ephemeralStorageLimit", "3Pi", "must be a whole number of Mi"),
    case(
        "VM size with a dash",
        "spec.accelerator.instanceTypes",
        ["NC-24"],
        "must be a VM size such as",
        blames="spec.accelerator.instanceTypes[0]",
        prints="NC-24",
    ),
    case(
        "taint without a key",
        "spec.accelerator.tolerations",
        [{"value": "gpu"}],
        "must set `key`, or `operator` 'Exists'",
        blames="spec.accelerator.tolerations[0]",
    ),
    case(
        "value where every value counts",
        "spec.accelerator.tolerations",
        [{"key": "a", "operator": "Exists", "value": "b"}],
        "must not be set with `operator` 'Exists'",
        blames="spec.accelerator.tolerations[0].value",
    ),
    case(
        "enforcement in lower case",
        "spec.isolation.enforcement",
        "enforce",
        "must be 'Enforce', 'Report' or 'Off'",
        server_says='supported values: "Enforce", "Report", "Off"',
    ),
    case(
        "rollout unknown",
        "spec.rollout",
        "Recreate",
        "must be 'Replace' or 'Surge'",
        server_says='supported values: "Replace", "Surge"',
    ),
    case("version with a letter", f"{VLLM}.version", "v0.32.0", "must be a vLLM release such as '0.32.0'"),
    case("version missing", f"{VLLM}.version", None, **REQUIRED, rows=(44,)),
    case("unknown field", "spec.gpus", 4, **UNKNOWN, rows=(44,), prints=None),
    case("unknown field below", f"{VLLM}.extra_args", ["--x"], **UNKNOWN, rows=(44,)),
    case("unknown null", "spec.gpus", None, **UNKNOWN, rows=(44,)),
    case("no spec", "spec", ABSENT, **REQUIRED, rows=(44,)),
    case("spec null", "spec", None, **REQUIRED, rows=(44,)),
    case("spec as a list", "spec", [], "must be an object", server_says="must be of type object", rows=(44,)),
    case(
        "engine as a string",
        "spec.engine",
        "vllm",
        "must be an object",
        server_says="must be of type object",
        prints=None,
    ),
    case("model name null", "spec.model.name", None, **REQUIRED, rows=(44,)),
    case(
        "10,000 variables",
        f"{VLLM}.extraEnv",
        [{"name": f"A{i}"} for i in range(10_000)],
        "must have at most 64 items",
        server_says="must have at most 64 items",
        rows=(44,),
    ),
    case(
        "an argument of 1.5 MiB",
        f"{VLLM}.extraArgs",
        ["x" * 1_572_864],
        "must have at most 1024 characters",
        server_says="Too long",
        blames=f"{VLLM}.extraArgs[0]",
        rows=(44,),
    ),
    case(
        "nested 100 deep",
        "spec.deep",
        reduce(lambda inner, _: {"a": inner}, range(100), {}),
        **UNKNOWN,
        rows=(44,),
    ),
)

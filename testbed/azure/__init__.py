"""A stand-in for Azure at its HTTP boundary: Azure Resource Manager and Resource Graph over an estate held in memory.

It is not Azure. It answers as Azure's management endpoint is documented to answer; what Azure leaves undocumented it
does not know. It imports nothing of the product.

    from testbed.azure.baseline import sealed_estate
    from testbed.azure.server import ArmStandIn

    estate = sealed_estate()
    estate.properties(estate.site.gpu_subnet)["defaultOutboundAccess"] = None
    with ArmStandIn(estate) as arm:
        ...                              # arm.url, arm.token; GET and POST as at management.azure.com
    arm.requests                         # every request in order of arrival: method, path, api_version, action, status
    arm.forbidden_requests               # those that would have written; a reader leaves it empty

    python -m testbed azure [--estate sealed|filtered|reference] [--plant NAME]... [--port N]
        first line of stdout: {"url": ..., "token": ..., "cluster": ...}

Estate (`estate.py`)
    A set of ARM resources, each with the body that a GET with the newest api-version answers: `id`, `name`, `type`,
    `location`, `sku`, `properties` ... What ARM shows inside its parent is kept there and only there: subnets and
    peerings in the virtual network, routes in the route table, rules in the security group, pools in the cluster
    (`agentPoolProfiles`), frontends, pools and rules in the load balancer. Asking for `.../subnets/x` finds the same
    dictionary. All else is a resource of its own: scale set instances (`{vmss}/virtualMachines/0`) and their interfaces
    (`.../networkInterfaces/nic`), role assignments, cache rules, virtual network links ...

    estate[id]                   the body, found whatever the letter case; a KeyError names what is missing
    estate.properties(id)        its `properties`, to read or to change
    estate.add(id, properties)   a new resource; returns the id. `estate.remove(id)` takes it and its children away
    estate.of_type(type)         bodies of one type
    estate.deny(scope, action)   the caller may not do `action` (glob, default `*`) at `scope` or below: 403 by id, rows
                                 silently gone from lists of a wider scope and from Resource Graph
    estate.lock(group)           node resource group lockdown: every action there is denied by a deny assignment
    estate.leave_out(type)       the region or the cloud does not offer this type
    estate.answer(id, action, value)  what a POST action answers, instead of what is computed from the estate
    estate.in_graph(id, body)    what Resource Graph believes of a resource; None: it has not heard of it
    estate.copy()                an estate of one's own
    estate.site                  the ids that the baselines promise to have (`Site`)
    estate.policy, estate.profile   the policy file (as a dict) and the profile it is meant to be audited with

Server (`server.py`)
    ArmStandIn(estate, page_size=..., latency=..., quota=Quota(), faults=[...])
    arm.serve(estate)            another estate from now on, under the same address
    arm.inject(Fault(Status(503), path="/subnets/", times=2)), arm.lift()       see `faults.py`
    arm.expire_token_after(40)   the token expires midway

What is planted (`plants/`, `generator.py`)
    PLANTS: dict name -> Plant. `plant.into(estate)` opens one path and returns what must then be found,
    `Expected(check, resource, severity)`; `plant.also` are check ids that may fail beside it.
    `topology(seed)` -> Topology(estate, planted, expected, also): a baseline with 0 to 4 plants. Sealed ones have none:
    whatever fails there at critical or high is a false alarm.

    `reference_estate.py` is the public reference deployment of the air-gapped article, with what must be found in it.
"""

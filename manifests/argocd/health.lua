-- The health of a ModelDeployment or an EgressAudit. Argo CD runs this for each object with `obj` as the live object.
-- Argo CD opens the libraries `base`, `table` and `package` for a health check: `string` and `math` do not exist here.
local health = {status = "Progressing", message = "the operator has not evaluated this generation yet"}
if obj.status == nil or obj.status.conditions == nil then
  return health
end
if obj.status.observedGeneration ~= obj.metadata.generation then
  return health
end

local conditions = {}
for _, condition in ipairs(obj.status.conditions) do
  conditions[condition.type] = condition
end
local ready, stalled = conditions.Ready, conditions.Stalled
if ready == nil then
  return health
end

health.message = ready.reason .. ": " .. ready.message
if ready.status == "True" then
  health.status = "Healthy"
elseif stalled ~= nil and stalled.status == "True" then
  health.status = "Degraded"
end
return health

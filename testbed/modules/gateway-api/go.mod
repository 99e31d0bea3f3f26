// Read, not built: the CRDs of the Gateway API are files of this module, and go.sum pins their bytes.
module testbed/gateway-api

go 1.26.0

require sigs.k8s.io/gateway-api v1.6.3

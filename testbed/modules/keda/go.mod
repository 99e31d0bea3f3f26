// Read, not built: the CRD of ScaledObject is a file of this module, and go.sum pins its bytes.
module testbed/keda

go 1.26.0

require github.com/kedacore/keda/v2 v2.21.0

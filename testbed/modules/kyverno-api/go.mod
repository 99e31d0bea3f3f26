// Read, not built: the CRDs of Kyverno's policies are files of this module, and go.sum pins their bytes.
module testbed/kyverno-api

go 1.26.0

require github.com/kyverno/api v0.0.1-alpha.3.0.20260723090831-fb2785727f98

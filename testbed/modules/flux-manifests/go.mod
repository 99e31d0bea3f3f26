// Read, not built: the kustomizations that the manifests of `flux install` are made of are files of this module.
module testbed/flux-manifests

go 1.26.0

require github.com/fluxcd/flux2/v2 v2.9.5

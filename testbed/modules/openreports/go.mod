// Read, not built: the CRDs of OpenReports are files of this module, and go.sum pins their bytes.
module testbed/openreports

go 1.26.0

require github.com/openreports/reports-api v0.2.1

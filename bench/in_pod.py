"""Run `hermetic` with the connection of a pod, not of a kubeconfig: `python -m bench.in_pod FOLDER run --config ...`.

FOLDER holds what a pod finds mounted (`token`, `ca.crt`, `namespace`); KUBERNETES_SERVICE_HOST and _PORT name the API
server. Only the path of the mounted files is replaced, and this program imports nothing else: the process loads and
weighs what it does in a cluster, where no kubeconfig is read.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

from hermetic.cli import main
from hermetic.kube.connection import find_connection

if __name__ == "__main__":
    os.environ.pop("KUBECONFIG", None)
    defaults = find_connection.__kwdefaults__
    assert defaults is not None
    defaults["service_account"] = Path(sys.argv.pop(1))
    main()

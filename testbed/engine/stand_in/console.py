"""Log lines as vLLM's API server writes them."""

from __future__ import annotations

import os
import time


def log(message: str, level: str = "INFO") -> None:
    print(f"(APIServer pid={os.getpid()}) {level} {time.strftime('%m-%d %H:%M:%S')} [stand-in] {message}", flush=True)


def access(client: str, method: str, path: str, status: str) -> None:
    print(f'(APIServer pid={os.getpid()}) INFO:     {client} - "{method} {path} HTTP/1.1" {status}', flush=True)

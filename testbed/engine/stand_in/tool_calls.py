"""Tool calls: which requests are answered with one, and a call whose arguments satisfy the tool's schema.

As in vLLM a named tool and `required` force a call; `auto` needs --enable-auto-tool-choice and --tool-call-parser.
Source: `keeps_tool_calls` in vllm/entrypoints/openai/chat_completion/message_assembly.py of 0.33.0.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Any

VALUES: Mapping[str, Any] = {
    "string": "stand-in", "number": 0.5, "integer": 1, "boolean": True, "array": [], "object": {}, "null": None
}  # fmt: skip


def tool_calls_of(given: Mapping[str, Any], flags: Mapping[str, Any]) -> tuple[dict[str, Any], ...]:
    """The calls of the answer, in the form of a chat message; none after the result of a tool, or without tools."""
    functions = [tool["function"] for tool in given.get("tools") or () if tool.get("type") == "function"]
    choice = given.get("tool_choice") or ("auto" if functions else "none")
    if isinstance(choice, dict):
        functions = [function for function in functions if function["name"] == choice["function"]["name"]]
    elif choice == "auto" and not (flags.get("enable-auto-tool-choice") and flags.get("tool-call-parser")):
        return ()
    if choice == "none" or not functions or given["messages"][-1].get("role") == "tool":
        return ()
    arguments = json.dumps(_arguments(functions[0].get("parameters") or {}))
    digest = hashlib.sha256(arguments.encode()).hexdigest()[:16]
    function = {"name": functions[0]["name"], "arguments": arguments}
    return ({"id": f"chatcmpl-tool-{digest}", "type": "function", "function": function},)


def _arguments(schema: Mapping[str, Any]) -> dict[str, Any]:
    properties = schema.get("properties") or {}
    return {name: _value(properties.get(name) or {}) for name in schema.get("required") or properties}


def _value(schema: Mapping[str, Any]) -> Any:
    return schema["enum"][0] if schema.get("enum") else VALUES[schema.get("type", "string")]

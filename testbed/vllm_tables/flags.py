"""From arguments to the shapes of flags, as the table states them."""

from __future__ import annotations

import ast

from testbed.python_sources import Definition, NotUnderstood, Sources, strings_in
from testbed.vllm_tables.annotations import FOLDED, UNREAD
from testbed.vllm_tables.parser_reading import SERVE, Argument, ParserReading

ARGPARSE = "vllm.utils.argparse_utils"
PARSER_CLASS = "FlexibleArgumentParser"
WITHOUT_VALUE = {"store_true", "store_false", "BooleanOptionalAction"}
ARITY = {None: "one", "?": "optional", "+": "many"}
# Flags whose values vLLM compares with a registry only when the server starts (`validate_api_server_args`): the module
# that fills the registry, and its names there. Plug-ins could add names; their flags are reserved.
REGISTRIES = {
    "--tool-call-parser": ("vllm.tool_parsers", "_TOOL_PARSERS_TO_REGISTER"),
    "--reasoning-parser": ("vllm.reasoning", "_REASONING_PARSERS_TO_REGISTER"),
}
# Flags whose values are the numbers of an enumeration, which argparse does not list.
ENUMERATIONS = {"--optimization-level": ("vllm.config.vllm", "OptimizationLevel")}

Flag = dict[str, object]


def flags_of(sources: Sources) -> dict[str, Flag]:
    """Every flag of `vllm serve` by its first long name; positionals are left out, argparse's own --help is not."""
    inverses = _inverse_prefixes(sources)
    flags: dict[str, Flag] = {"--help": {"value": "none", "aliases": ["-h"]}}
    for argument in ParserReading(sources).read():
        if argument.names[0].startswith("-"):
            name, flag = _flag(argument, inverses)
            flags[name] = flag | _registered(sources, name)
    _hold_to_one_meaning(flags)
    return flags


def _flag(argument: Argument, inverses: dict[str, str]) -> tuple[str, Flag]:
    keywords = argument.keywords
    long_names = [name for name in argument.names if name.startswith("--")]
    name = long_names[0]
    flag: Flag = {"value": _arity(argument)}
    if aliases := sorted(set(argument.names) - {name}):
        flag["aliases"] = aliases
    if keywords.get("action") == "BooleanOptionalAction":
        flag["negations"] = _negations(long_names, inverses)
    if keywords.get("action") == "append":
        flag["repeats"] = True
    kind, choices = keywords.get("type", "text"), keywords.get("choices")
    if isinstance(choices, list) and kind is not UNREAD:
        flag["choices"] = choices
    if kind == FOLDED:
        flag["folded"] = True
    elif isinstance(kind, str) and kind != "text":
        flag["type"] = kind
    return name, flag


def _registered(sources: Sources, name: str) -> Flag:
    """The choices of a flag whose values are names of a registry or numbers of an enumeration; {} for any other."""
    if name in ENUMERATIONS:
        return {"choices": _numbers(sources, *ENUMERATIONS[name])}
    if name not in REGISTRIES:
        return {}
    module, registry = REGISTRIES[name]
    meaning = sources.meaning(module, registry)
    if not (isinstance(meaning, Definition) and isinstance(meaning.node, ast.Dict)):
        raise NotUnderstood(module, ast.Name(registry), "a registry that is no literal")
    return {"choices": sorted(_name(key, meaning.node, module) for key in meaning.node.keys)}


def _numbers(sources: Sources, module: str, enumeration: str) -> list[str]:
    meaning = sources.meaning(module, enumeration)
    if not (isinstance(meaning, Definition) and isinstance(meaning.node, ast.ClassDef)):
        raise NotUnderstood(module, ast.Name(enumeration), "no such class")
    values = [member.value for member in meaning.node.body if isinstance(member, ast.Assign)]
    return [str(ast.literal_eval(value)) for value in values]


def _arity(argument: Argument) -> str:
    action, arity = argument.keywords.get("action"), argument.keywords.get("nargs")
    if action in WITHOUT_VALUE:
        return "none"
    known_action = action in {None, "append"} or not isinstance(action, str)
    if not known_action or arity not in ARITY:
        raise NotUnderstood(SERVE, ast.Name(argument.names[0]), f"action {action} with nargs {arity}")
    return ARITY[arity]


def _negations(names: list[str], inverses: dict[str, str]) -> list[str]:
    switched_off = {f"--no-{name.removeprefix('--')}" for name in names}
    for name in names:
        for prefix, inverse in inverses.items():
            if name.startswith(prefix):
                switched_off.add(inverse + name.removeprefix(prefix))
    return sorted(switched_off)


def _hold_to_one_meaning(flags: dict[str, Flag]) -> None:
    """argparse refuses two arguments with one option string, so a duplicate here is an error of this reader."""
    seen: set[str] = set()
    for name, flag in flags.items():
        aliases, negations = flag.get("aliases", []), flag.get("negations", [])
        assert isinstance(aliases, list)
        assert isinstance(negations, list)
        for spelling in (name, *aliases, *negations):
            if spelling in seen:
                raise NotUnderstood(SERVE, ast.Name(spelling), "two flags share an option string")
            seen.add(spelling)


def _parser_class(sources: Sources) -> ast.ClassDef:
    meaning = sources.meaning(ARGPARSE, PARSER_CLASS)
    if not (isinstance(meaning, Definition) and isinstance(meaning.node, ast.ClassDef)):
        raise NotUnderstood(ARGPARSE, ast.Name(PARSER_CLASS), "no such class")
    return meaning.node


def _inverse_prefixes(sources: Sources) -> dict[str, str]:
    """{"--enable-": "--disable-", ...} where the parser replaces argparse's boolean action, {} where it does not."""
    for node in ast.walk(_parser_class(sources)):
        match node:
            case ast.Call(
                func=ast.Attribute(value=ast.Name(id="self"), attr="register"),
                args=[_, ast.Name(id="BooleanOptionalAction"), ast.Name(id=replacement)],
            ):
                return _inverses_of(sources, replacement)
            case ast.Call(func=ast.Attribute(attr="register")):
                raise NotUnderstood(ARGPARSE, node, "the parser replaces an action in a way never seen")
    return {}


def _inverses_of(sources: Sources, action: str) -> dict[str, str]:
    meaning = sources.meaning(ARGPARSE, action)
    if isinstance(meaning, Definition) and isinstance(meaning.node, ast.ClassDef):
        for statement in meaning.node.body:
            match statement:
                case ast.Assign(targets=[ast.Name(id="_inverse_prefixes")], value=value):
                    return dict(ast.literal_eval(value))
    raise NotUnderstood(ARGPARSE, ast.Name(action), "a boolean action without _inverse_prefixes")


def shorthands_of(sources: Sources) -> dict[str, str]:
    """{"-O": "--optimization-level"}: prefixes that the parser rewrites before argparse sees them (-O3, -O=3, -O 3)."""
    found: dict[str, str] = {}
    for node in ast.walk(_parser_class(sources)):
        match node:
            case ast.If(test=test, body=body):
                prefixes = {text for text in strings_in(test) if len(text) == len("-O") and text[0] == "-" != text[1]}
                targets = {text for statement in body for text in strings_in(statement) if text.startswith("--")}
                if len(prefixes) == len(targets) == 1:
                    found[prefixes.pop()] = targets.pop()
    return found


def environment_of(sources: Sources) -> list[str]:
    """Every name in the registry of vllm/envs.py; any other VLLM_ name makes vLLM warn, or fail where asked."""
    for statement in sources.tree("vllm.envs").body:
        match statement:
            case ast.AnnAssign(target=ast.Name(id="environment_variables"), value=ast.Dict(keys=keys)):
                return sorted(_name(key, statement, "vllm.envs") for key in keys)
    raise NotUnderstood("vllm.envs", ast.Name("environment_variables"), "no registry of environment variables")


def _name(key: ast.expr | None, registry: ast.AST, module: str) -> str:
    if isinstance(key, ast.Constant) and isinstance(key.value, str):
        return key.value
    raise NotUnderstood(module, key or registry, "a name that is computed")

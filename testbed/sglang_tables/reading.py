"""The flags of `sglang serve`: the fields of `ServerArgs` as `add_cli_args_from_dataclass` makes arguments of them.

The rules are SGLang's own (srt/arg_groups/arg_utils.py), written down here once more because a class can only be read,
never imported. `KNOWN_RULES` holds the wordings of them that this module was checked against.
"""

from __future__ import annotations

import ast
import hashlib
from collections.abc import Iterator
from dataclasses import dataclass, field

from testbed.python_sources import Definition, NotUnderstood, Sources

SERVER_ARGS = "sglang.srt.server_args"
ARG_UTILS = "sglang.srt.arg_groups.arg_utils"
ENVIRON = "sglang.srt.environ"
RULES = ("add_cli_args_from_dataclass", "_unwrap_annotated", "_unwrap_optional", "_infer_type_func")
KNOWN_RULES = frozenset({"512278067279c1e67bec06dfb95ff0a9890396e61ea066cbe45df8ad2f3545f2"})  # 0.5.21 - 0.5.23
# What a `type=` callable accepts, as the tables call it. Those of CUDA graphs read a small language of their own.
TYPES = {
    "str": "text", "int": "int", "float": "float", "human_readable_int": "si-size", "json.loads": "json",
    "json_list_type": "json", "nullable_str": "text", "parse_cuda_graph_backend_arg": "text",
    "parse_cuda_graph_config_arg": "text",
}  # fmt: skip
WITHOUT_VALUE = frozenset({"store_true", "store_false", "argparse.BooleanOptionalAction", "DeprecatedStoreTrueAction"})
WITH_VALUES = frozenset({"LoRAPathAction"})
ARITY = {None: "one", "?": "optional", "+": "many", "*": "any"}
# `[m.name.lower() for m in _real_kv_hash_modes()]` and the like: what the parser computes, and where the names stand.
COMPUTED = {
    "_reasoning_parser_choices": ("sglang.srt.parser.reasoning_parser_names", "REASONING_PARSER_NAMES"),
    "_tool_call_parser_choices": ("sglang.srt.function_call.parser_names", "TOOL_CALL_PARSER_NAMES"),
}
UNKNOWN_CHOICES = frozenset({"--kv-canary-real-data"})

Flag = dict[str, object]


@dataclass
class Argument:
    """What is given to `add_argument`, as written: unevaluated expressions, and the field's own type."""

    module: str
    names: list[str]
    given: dict[str, ast.expr]
    annotated: ast.expr | None = None


@dataclass
class Reading:
    """One release's sources."""

    sources: Sources
    local: dict[str, ast.expr] = field(default_factory=dict)

    def rules_wording(self) -> str:
        """The SHA-256 of the functions that make arguments of fields, as this release writes them."""
        texts = (self.sources.segment(ARG_UTILS, self.sources.function(ARG_UTILS, name)) for name in RULES)
        return hashlib.sha256("\n".join(texts).encode()).hexdigest()

    def flags(self) -> dict[str, Flag]:
        """Every flag by its first name; argparse's own --help among them."""
        flags_by_name: dict[str, Flag] = {"--help": {"value": "none", "aliases": ["-h"]}}
        spelled = {"--help", "-h"}
        for argument in (*self._of_fields(), *self._written_out()):
            name, flag = self._flag(argument)
            aliases, negations = flag.get("aliases", []), flag.get("negations", [])
            assert isinstance(aliases, list)
            assert isinstance(negations, list)
            if spelled & {name, *aliases, *negations}:
                raise NotUnderstood(argument.module, ast.Name(name), "two flags share an option string")
            spelled |= {name, *aliases, *negations}
            flags_by_name[name] = flag
        return flags_by_name

    def environment(self) -> list[str]:
        """Every variable of the registry `Envs`; others are read here and there, and are on no list."""
        cls = self._class(ENVIRON, "Envs")
        return sorted(
            statement.targets[0].id
            for statement in cls.body
            if isinstance(statement, ast.Assign)
            and isinstance(statement.targets[0], ast.Name)
            and isinstance(statement.value, ast.Call)
        )

    def _of_fields(self) -> Iterator[Argument]:
        namespaces = self.sources.meaning(SERVER_ARGS, "_INPUT_NAMESPACES")
        assert isinstance(namespaces, Definition)
        assert isinstance(namespaces.node, ast.List)
        for name in namespaces.node.elts:
            assert isinstance(name, ast.Name)
            meaning = self.sources.meaning(SERVER_ARGS, name.id)
            if not (isinstance(meaning, Definition) and isinstance(meaning.node, ast.ClassDef)):
                raise NotUnderstood(SERVER_ARGS, name, "a namespace that is no class")
            for statement in meaning.node.body:
                match statement:
                    case ast.AnnAssign(
                        target=ast.Name(id=of),
                        annotation=ast.Subscript(value=ast.Name(id="A"), slice=ast.Tuple(elts=elts)),
                    ):
                        yield from self._of_field(meaning.module, of, elts)

    def _of_field(self, module: str, name: str, elts: list[ast.expr]) -> Iterator[Argument]:
        dashed = "--" + name.replace("_", "-")
        match elts[1]:
            case ast.Call(func=ast.Name(id="Arg"), keywords=keywords):
                keywords_given = {keyword.arg: keyword.value for keyword in keywords if keyword.arg}
            case ast.Call():  # Derived: no input
                return
            case _:
                keywords_given = {}
        if "no_cli" in keywords_given:
            return
        names = [self._text(module, keywords_given.pop("cli_name"))] if "cli_name" in keywords_given else [dashed]
        if "aliases" in keywords_given:
            aliases = self.value(module, keywords_given.pop("aliases"))
            assert isinstance(aliases, list)
            names += aliases
        if "type_parser" in keywords_given:
            keywords_given["type"] = keywords_given.pop("type_parser")
        if "action_kwargs" in keywords_given:
            extra = keywords_given.pop("action_kwargs")
            assert isinstance(extra, ast.Dict)
            keywords_given |= {
                self._text(module, key): value for key, value in zip(extra.keys, extra.values, strict=True) if key
            }
        yield Argument(module, names, keywords_given, elts[0])

    def _written_out(self) -> Iterator[Argument]:
        """The calls of `parser.add_argument` in ServerArgs.add_cli_args."""
        cls = self._class(SERVER_ARGS, "ServerArgs")
        function = next(s for s in cls.body if isinstance(s, ast.FunctionDef) and s.name == "add_cli_args")
        for statement in function.body:
            match statement:
                case ast.Assign(targets=[ast.Name(id=name)], value=value):
                    self.local[name] = value
                case ast.Expr(
                    value=ast.Call(func=ast.Attribute(value=ast.Name(id="parser"), attr="add_argument")) as call
                ):
                    names = [self._text(SERVER_ARGS, name) for name in call.args]
                    yield Argument(SERVER_ARGS, names, {k.arg: k.value for k in call.keywords if k.arg})
                case ast.Expr(value=ast.Call(func=ast.Name(id="add_cli_args_from_dataclass"))) | ast.Expr(
                    ast.Constant()
                ):
                    continue
                case ast.If(body=[ast.Expr(ast.Call(func=ast.Attribute(attr="add")))]):
                    continue  # a choice for SGLang's own tests, when a variable of theirs is set
                case _:
                    raise NotUnderstood(SERVER_ARGS, statement, "a statement beside the arguments")

    def _flag(self, argument: Argument) -> tuple[str, Flag]:
        name, aliases = argument.names[0], argument.names[1:]
        kind, choices, default_arity = self._type_of(argument)
        flag: Flag = {"value": self._arity(argument, kind, default_arity)}
        if aliases:
            flag["aliases"] = sorted(aliases)
        if "action" in argument.given and ast.unparse(argument.given["action"]) == "argparse.BooleanOptionalAction":
            flag["negations"] = sorted(f"--no-{name.removeprefix('--')}" for name in argument.names if name[:2] == "--")
        if flag["value"] != "none":
            stated = argument.given.get("choices")
            if stated is not None and name not in UNKNOWN_CHOICES:
                stated_choices = self.value(argument.module, stated)
                assert isinstance(stated_choices, list)
                choices = stated_choices
            if choices:
                flag["choices"] = sorted(map(str, choices))
            if kind != "text":
                flag["type"] = kind
        return name, flag

    def _type_of(self, argument: Argument) -> tuple[str, list[object], str]:
        """(type, choices of a Literal, arity where `nargs` says none)."""
        if "type" in argument.given:
            parser = ast.unparse(argument.given["type"])
            if parser not in TYPES:
                raise NotUnderstood(argument.module, argument.given["type"], "a type never seen")
            return TYPES[parser], [], "one"
        flag_type: tuple[str, list[object], str] = ("text", [], "one")
        match _without_none(argument.annotated):
            case ast.Subscript(value=ast.Name(id="Literal"), slice=members):
                listed = members.elts if isinstance(members, ast.Tuple) else [members]
                values = [self.value(argument.module, member) for member in listed]
                flag_type = ("int" if isinstance(values[0], int) else "text", values, "one")
            case ast.Subscript(value=ast.Name(id="List" | "list"), slice=ast.Name(id=of)):
                flag_type = (TYPES.get(of, "text"), [], "many")
            case ast.Name(id="bool"):
                flag_type = ("bool", [], "none")
            case ast.Name(id=of):
                flag_type = (TYPES.get(of, "text"), [], "one")
        return flag_type

    def _arity(self, argument: Argument, kind: str, default: str) -> str:
        nargs = self.value(argument.module, argument.given["nargs"]) if "nargs" in argument.given else None
        action = argument.given.get("action")
        if action is None:
            return default if nargs is None or default == "none" else ARITY[str(nargs)]
        named = ast.unparse(action).strip("'\"")
        if named in WITHOUT_VALUE:
            return "none"
        if named in WITH_VALUES or (named == "DeprecatedStoreConstAction" and "nargs" in argument.given):
            return ARITY[nargs if nargs is None else str(nargs)]
        raise NotUnderstood(argument.module, action, f"an action never seen, for {kind}")

    def _class(self, module: str, name: str) -> ast.ClassDef:
        # The name is assigned anew below the class, by what makes a record of it.
        for node in self.sources.tree(module).body:
            if isinstance(node, ast.ClassDef) and node.name == name:
                return node
        raise NotUnderstood(module, ast.Name(name), "no such class")

    def _text(self, module: str, node: ast.expr) -> str:
        value = self.value(module, node)
        if not isinstance(value, str):
            raise NotUnderstood(module, node, "no text")
        return value

    def value(self, module: str, node: ast.expr) -> object:
        """What an expression of constants, lists and names of lists is worth; sets and tuples count as lists."""
        result: object = None
        match node:
            case ast.Constant(value=value):
                return value
            case ast.List(elts=elts) | ast.Tuple(elts=elts) | ast.Set(elts=elts):
                result = [self.value(module, elt) for elt in elts]
            case ast.BinOp(left=left, op=ast.Add(), right=right):
                result = self._sum(self.value(module, left), self.value(module, right))
            case ast.Call(func=ast.Name(id="set" | "frozenset" | "list" | "tuple"), args=[inner]):
                result = self.value(module, inner)
            case ast.Call(func=ast.Name(id=name), args=[]) if name in COMPUTED:
                where, listed = COMPUTED[name]
                result = self._named(where, listed)
            case ast.Name(id=name):
                result = self._named(module, name)
            case ast.Attribute(value=ast.Name(id=name), attr=attribute):
                result = self._of_class(module, name, attribute, node)
        if result is None:
            raise NotUnderstood(module, node, "an expression never seen")
        return result

    def _sum(self, left: object, right: object) -> object:
        if isinstance(left, list) and isinstance(right, list):
            return [*left, *right]
        return left + right if isinstance(left, str) and isinstance(right, str) else None

    def _named(self, module: str, name: str) -> object:
        if module == SERVER_ARGS and name in self.local:
            return self.value(module, self.local[name])
        meaning = self.sources.meaning(module, name)
        if isinstance(meaning, Definition) and isinstance(meaning.node, ast.expr):
            return self.value(meaning.module, meaning.node)
        return None

    def _of_class(self, module: str, name: str, attribute: str, node: ast.expr) -> object:
        meaning = self.sources.meaning(module, name)
        if isinstance(meaning, Definition) and isinstance(meaning.node, ast.ClassDef):
            stated = {
                target.id: statement.value
                for statement in meaning.node.body
                if isinstance(statement, ast.Assign)
                for target in statement.targets
                if isinstance(target, ast.Name)
            }
            if attribute in stated:
                value = stated[attribute]
                if isinstance(value, ast.Tuple):  # names of the class's own
                    members = [stated[elt.id] if isinstance(elt, ast.Name) else elt for elt in value.elts]
                    return [self.value(meaning.module, member) for member in members]
                return self.value(meaning.module, value)
        raise NotUnderstood(module, node, "an attribute never seen")


def _without_none(annotation: ast.expr | None) -> ast.expr | None:
    """X of Optional[X] and X | None."""
    match annotation:
        case ast.Subscript(value=ast.Name(id="Optional"), slice=inner):
            return inner
        case ast.BinOp(left=left, op=ast.BitOr(), right=ast.Constant(value=None)):
            return left
    return annotation

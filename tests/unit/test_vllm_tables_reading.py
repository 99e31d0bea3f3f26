"""The reader of vLLM's source: it writes down what it followed, and stops at what it was never taught."""

from __future__ import annotations

import io
import tarfile
from textwrap import dedent

import pytest

from testbed.package_index import (
    Index,
    IndexUnavailable,
    SourceDistribution,
    choose,
    fetch,
    source_distributions,
)
from testbed.python_sources import NotUnderstood, Sources
from testbed.vllm_tables.flags import environment_of, flags_of, shorthands_of

SERVE = """
    from vllm.entrypoints.cli_args import make_arg_parser

    class ServeSubcommand:
        def subparser_init(self, subparsers):
            serve_parser = subparsers.add_parser("serve", help="Serve.")
            serve_parser = make_arg_parser(serve_parser)
            serve_parser.epilog = "more"
            return serve_parser
"""
CLI_ARGS = """
    from vllm.config import ModelConfig
    from vllm.engine.arg_utils import get_kwargs
    import argparse, sys

    def make_arg_parser(parser, async_args_only: bool = False):
        parser.add_argument("model_tag", nargs="?")
        model_kwargs = get_kwargs(ModelConfig)
        group = parser.add_argument_group(title="ModelConfig")
        BODY
        return parser
"""
CONFIG = """
    from dataclasses import dataclass
    from typing import ClassVar, Literal, Optional

    Level = Literal["low", "high"]

    @dataclass
    class Inner:
        depth: int = 1

    @dataclass
    class Base:
        eager: bool = False

    @dataclass
    class ModelConfig(Base):
        shared: ClassVar[int] = 0
        length: int | None = None
        share: float = 0.9
        level: Optional[Level] = None
        open_level: Level | str = "low"
        names: list[str] | None = None
        ranks: list[Literal[1, 8]] | None = None
        inner: Inner | None = None
        either: bool | str | None = None
        table: dict[str, int] | None = None
        text_or_table: dict[str, int] | str = ""
"""
RULES = """
    def _compute_kwargs(cls):
        for name in cls:
            if name == "length":
                return "size"
"""
PARSER = """
    class FlexibleArgumentParser:
        def parse_args(self, args):
            for arg in args:
                if arg.startswith("-O") and arg != "-O":
                    args += ["--optimization-level", arg]
"""


def sources(body: str = "pass", **more: str) -> Sources:
    texts = {
        "vllm.entrypoints.cli.serve": SERVE,
        "vllm.entrypoints.cli_args": CLI_ARGS.replace("BODY", body),
        "vllm.config": CONFIG,
        "vllm.engine.arg_utils": RULES,
        "vllm.utils.argparse_utils": PARSER,
        **more,
    }
    return Sources({name: dedent(text).encode() for name, text in texts.items()}, frozenset())


def flag(body: str) -> dict[str, object]:
    flags = flags_of(sources(body))
    del flags["--help"]
    ((_, shape),) = flags.items()
    return shape


@pytest.mark.parametrize(
    ("field", "shape"),
    [
        ("eager", {"value": "none", "negations": ["--no-x"]}),
        ("length", {"value": "one", "type": "size"}),
        ("share", {"value": "one", "type": "float"}),
        ("level", {"value": "one", "choices": ["high", "low"]}),
        ("open_level", {"value": "one"}),
        ("names", {"value": "many"}),
        ("ranks", {"value": "many", "choices": ["1", "8"], "type": "int"}),
        ("inner", {"value": "one", "type": "object"}),
        ("either", {"value": "optional"}),
        ("table", {"value": "one", "type": "json"}),
        ("text_or_table", {"value": "one"}),
    ],
)
def test_the_annotation_of_a_field_gives_the_shape_of_its_flag(field, shape):
    assert flag(f'group.add_argument("--x", **model_kwargs["{field}"])') == shape


def test_aliases_and_keywords_written_out_are_kept():
    assert flag('parser.add_argument("--size", "-s", type=int, default=1)') == {
        "value": "one",
        "aliases": ["-s"],
        "type": "int",
    }


def test_keywords_merged_or_changed_before_use_are_followed():
    assert flag('group.add_argument("--x", **{**model_kwargs["names"], "default": None})') == {"value": "many"}
    assert flag(
        'model_kwargs["names"]["type"] = int; del model_kwargs["names"]["nargs"]; '
        'group.add_argument("--x", **model_kwargs["names"])'
    ) == {"value": "one", "type": "int"}
    assert flag(
        'model_kwargs["level"]["choices"].remove("low"); group.add_argument("--x", **model_kwargs["level"])'
    ) == {"value": "one", "choices": ["high"]}


def test_choices_that_another_converter_would_change_are_not_promised():
    body = 'level = model_kwargs["level"]; level["type"] = lambda s: s.lower(); group.add_argument("--x", **level)'
    assert flag(body) == {"value": "one"}


def test_a_flag_hidden_from_the_help_text_is_a_flag():
    body = 'group.add_argument("--x") if False else None'
    with pytest.raises(NotUnderstood):
        flag(body)
    condition = "if not ('serve' in sys.argv[1:] and '--help' in sys.argv[1:]): parser.add_argument('--x')"
    assert flag(condition) == {"value": "one"}


@pytest.mark.parametrize(
    "body",
    [
        "add_more(parser)",
        "register(get_kwargs(ModelConfig))",
        "parser.set_defaults(x=1)",
        "parser.add_argument('--' + name)",
        "parser.add_argument('--x', **elsewhere)",
        "parser.add_argument('--x', action='count')",
        "parser.add_argument('--x', nargs=2)",
        "parser.add_argument('--x', **model_kwargs['gone'])",
        "if elsewhere: parser.add_argument('--x')",
        "for name in elsewhere: parser.add_argument(name)",
        "while True: parser.add_argument('--x')",
        "with elsewhere: parser.add_argument('--x')",
        "parser.add_argument('--x'); parser.add_argument('--y', '--x')",
    ],
)
def test_what_cannot_be_followed_ends_the_derivation(body):
    with pytest.raises(NotUnderstood):
        flags_of(sources(body))


def test_a_platform_that_adds_arguments_of_its_own_ends_the_derivation():
    hook = "class P:\n    def pre_register_and_update(cls, parser):\n        parser.add_argument('--x')\n"
    body = "current_platform.pre_register_and_update(parser)"
    assert flags_of(sources(body))
    with pytest.raises(NotUnderstood, match="a platform that adds arguments"):
        flags_of(sources(body, **{"vllm.platforms.some": hook}))


def test_names_are_followed_through_reexports_and_star_imports():
    body = "group.add_argument('--x', **get_kwargs(Far)['deep'])"
    reexported = sources(
        **{
            "vllm.entrypoints.cli_args": "from vllm.near import Far\n" + dedent(CLI_ARGS).replace("BODY", body),
            "vllm.near": "from .far import *",
            "vllm.far": "from dataclasses import dataclass\n@dataclass\nclass Far:\n    deep: int = 0\n",
        }
    )
    assert flags_of(reexported)["--x"] == {"value": "one", "type": "int"}


def test_shorthands_are_those_the_parser_rewrites():
    assert shorthands_of(sources()) == {"-O": "--optimization-level"}


def test_environment_names_are_the_keys_of_the_registry_and_never_computed():
    registry = 'environment_variables: dict[str, object] = {"VLLM_B": 1, "VLLM_A": 2}'
    assert environment_of(sources(**{"vllm.envs": registry})) == ["VLLM_A", "VLLM_B"]
    with pytest.raises(NotUnderstood, match="computed"):
        environment_of(sources(**{"vllm.envs": registry.replace('"VLLM_A"', "NAME")}))


def test_only_the_package_is_read_from_the_archive(tmp_path):
    archive = tmp_path / "vllm-9.9.9.tar.gz"
    with tarfile.open(archive, "w:gz") as tar:
        for name in ("vllm-9.9.9/setup.py", "vllm-9.9.9/vllm/envs.py", "vllm-9.9.9/vllm/config/__init__.py"):
            member = tarfile.TarInfo(name)
            member.size = 1
            tar.addfile(member, io.BytesIO(b"#"))
    assert set(Sources.of_archive(archive).texts) == {"vllm.envs", "vllm.config"}


class Pages(Index):
    """An index whose one page is given."""

    def __init__(self, page: bytes) -> None:
        super().__init__("https://index.invalid/simple", None)
        object.__setattr__(self, "page", page)

    def open(self, url: str) -> io.BytesIO:
        assert url == "https://index.invalid/simple/vllm/"
        return io.BytesIO(self.page)


def test_the_index_is_read_as_json_and_as_html_alike():
    as_json = b"""{"files": [
        {"filename": "x", "url": "../../f/vllm-0.9.1.tar.gz", "hashes": {"sha256": "aa"}, "yanked": false},
        {"filename": "x", "url": "../../f/vllm-0.9.2.tar.gz", "hashes": {"sha256": "bb"}, "yanked": "broken"},
        {"filename": "x", "url": "../../f/vllm-0.9.3rc1.tar.gz", "hashes": {"sha256": "cc"}},
        {"filename": "x", "url": "../../f/vllm-0.9.4-cp312.whl", "hashes": {"sha256": "dd"}}]}"""
    as_html = b"""<a href="../../f/vllm-0.9.1.tar.gz#sha256=aa">1</a>
        <a data-yanked="broken" href="../../f/vllm-0.9.2.tar.gz#sha256=bb">2</a>
        <a href="../../f/vllm-0.9.4-cp312.whl#sha256=dd">4</a>"""
    expected = [SourceDistribution((0, 9, 1), "https://index.invalid/f/vllm-0.9.1.tar.gz", "aa")]
    assert source_distributions(Pages(as_json)) == expected
    assert source_distributions(Pages(as_html)) == expected


def test_a_minor_version_means_its_newest_patch_release():
    offered = [SourceDistribution((0, minor, patch), "", "") for minor, patch in [(9, 2), (9, 10), (10, 0)]]
    assert choose(offered, "0.9").name == "0.9.10"
    assert choose(offered, "0.9.2").name == "0.9.2"
    with pytest.raises(IndexUnavailable, match=r"no distribution of 0\.11"):
        choose(offered, "0.11")


def test_an_archive_that_is_not_what_the_index_promised_is_not_kept(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    other = SourceDistribution((0, 9, 1), "https://index.invalid/simple/vllm/", "0" * 64)
    with pytest.raises(IndexUnavailable, match="its SHA-256 differs"):
        fetch(Pages(b"tampered"), other)
    assert not [path for path in tmp_path.rglob("*") if path.is_file()]

"""The section about weights: rates beside those of other tools, the ceilings, and what can be reached of each goal."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from bench import results
from bench.tables import Row, origin, table


def section() -> Iterator[str]:
    result = results.load("weights")
    if result is None:
        return
    figures = result["figures"]
    capped, memory = figures["capped"], figures["memory"]
    yield "## Verifying and staging weights\n"
    yield (
        f"{figures['files']} files of {figures['bytes'] // figures['files'] // 2**20} MiB in memory (tmpfs: no disk, "
        f"no page cache), and the same files under two names each; medians of {figures['rounds']} rounds in turns, "
        "whole processes with their start. sha256sum works on one of the files. How often Hermetic is faster depends "
        "on the number of cores: sha256sum and cp use one."
        + (" All of them had priority over everything else on the machine.\n" if figures["priority"] else "\n")
    )
    yield from _verify(figures)
    yield from _stage(figures)
    yield _capped_share(figures["capped_share"])
    yield (
        f"On a server that caps each of {capped['streams']} streams ({capped['cap_MBps']:g} MB/s in all), one file is "
        f"verified by ranges at {capped['sharded_MBps']:g} MB/s, {capped['of_the_cap']:.2f} of the cap "
        f"(goal >= 0.92), and {capped['of_sequential']:g} times as fast as by one (goal >= 4). `hermetic verify` "
        f"has {memory['model_MiB']:g} MiB at its peak, and {memory['many_files_MiB']:g} MiB with "
        f"{memory['many_files']:,} files in one folder (goal <= 200).\n"
    )
    yield origin(result)


def _verify(figures: dict[str, Any]) -> Iterator[str]:
    verify = figures["verify"]
    ours, twice = verify["hermetic"], verify["hermetic_twice"]

    def beside(label: str, name: str, goal: str) -> Row:
        return label, f"{verify[name]:g}", f"{ours / verify[name]:.2f}", f"{twice / verify[name]:.2f}", goal

    yield (
        "The hash ceiling is SHA-256 by the same library, of one buffer of 1 MiB on each thread, which its core keeps: "
        "nothing is read. The ceiling with reading reads every file into that buffer, one on each thread, and does "
        "nothing else.\n"
    )
    small, large = _sizes(figures)
    yield table(
        ("verify", "GB/s", f"Hermetic is faster by, {small}", large, "goal"),
        [
            (f"Hermetic, {small}", f"{ours:g}", "", "", ""),
            (f"Hermetic, {large}", f"{twice:g}", "", "", ""),
            beside("sha256sum --check", "sha256sum", ">= 6"),
            beside("model_signing verify", "model_signing", ">= 1.4"),
            beside("hash ceiling", "hash_ceiling", ">= 0.95"),
            beside("ceiling with reading", "read_ceiling", ""),
            _start(figures, "verify"),
        ],
    )
    raw, reading = (verify["of_one_core"][name] for name in ("hash_ceiling", "read_ceiling"))
    most = verify["read_ceiling"] / verify["hash_ceiling"]
    yield (
        f"One core hashes {raw:g} GB/s, and {reading:g} GB/s where it copies the bytes out of the file first: "
        f"{most:.2f} of the hash ceiling is what the smallest loop reached that reads, so the goal of 0.95 of that "
        f"ceiling is {_met(most, 0.95)} on this machine; of the ceiling with reading Hermetic has "
        f"{ours / verify['read_ceiling']:.2f}, and {verify['after_start'] / verify['read_ceiling']:.2f} after its "
        "start. Blocks from 32 KiB to 4 MiB, and mapping the files (windows of 1 to 64 MiB, with and without "
        "MADV_POPULATE_READ) in place of reading them, cost one core the same within 8 %: what the copy costs, page "
        "tables cost too. A mapped file that is cut short would end the process.\n"
    )


def _stage(figures: dict[str, Any]) -> Iterator[str]:
    stage, disk, cores = figures["stage"], figures["stage_on_disk"], figures["cores"]
    ours, twice = stage["hermetic"], stage["hermetic_twice"]

    def beside(label: str, name: str, goal: str) -> Row:
        return label, f"{stage[name]:g}", f"{ours / stage[name]:.2f}", f"{twice / stage[name]:.2f}", goal

    small, large = _sizes(figures)
    of_cp = disk["hermetic"] / disk["cp_and_sync"]
    yield table(
        ("stage", "GB/s", f"Hermetic is faster by, {small}", large, "goal"),
        [
            (f"Hermetic, {small}", f"{ours:g}", "", "", ""),
            (f"Hermetic, {large}", f"{twice:g}", "", "", ""),
            beside("cp && sha256sum", "cp_and_sha256sum", ">= 3"),
            (f"cp, {small}", f"{stage['cp']:g}", f"{ours / stage['cp']:.2f}", "", ">= 0.9"),
            (f"cp, {large}", f"{stage['cp_twice']:g}", "", f"{twice / stage['cp_twice']:.2f}", ">= 0.9"),
            _start(figures, "stage"),
            (f"Hermetic, {disk['bytes'] / 2**30:g} GiB to the disk", f"{disk['hermetic']:g}", "", "", ""),
            ("cp && sync, to the disk", f"{disk['cp_and_sync']:g}", f"{of_cp:.2f}", "", ">= 0.9"),
        ],
    )
    hashing, copying = figures["verify"]["of_one_core"]["hash_ceiling"], stage["of_one_core"]["cp"]
    most = cores / (1 / hashing + 1 / copying)
    yield (
        f"The work of cp ({copying:g} GB/s of one core) and that of the hash, on {cores} cores together, come to "
        f"{most:.2f} GB/s at most: {most / stage['cp']:.2f} of what cp alone reaches from memory to memory, so the "
        f"goal of 0.9 of cp is {_met(most / stage['cp'], 0.9)} in memory; Hermetic is at {ours / most:.2f} of that "
        f"bound, and at {stage['after_start'] / most:.2f} after its start. With {large} cp has "
        f"{stage['cp_twice'] / stage['cp']:.2f} of its own rate with {small}: only rows of one size compare. "
        f"Where the files must be durable, the comparable operation is `cp && sync`: there the goal "
        f"is {'met' if of_cp >= 0.9 else 'not met'}, and Hermetic "
        "has hashed and listed the files as well; it writes whole pages past the page cache. In memory fewer copies do "
        "not help: copy_file_range, whose result is hashed from the file, and hashing a mapped source cost as much of "
        "a core as reading and writing, or more.\n"
    )


def _sizes(figures: dict[str, Any]) -> tuple[str, str]:
    size = figures["bytes"] / 2**30
    return f"{size:g} GiB", f"{2 * size:g} GiB"


def _start(figures: dict[str, Any], command: str) -> Row:
    """The start, in seconds and as a part of both runs."""
    rates, size = figures[command], figures["bytes"] / 1e9
    seconds = rates["start_seconds"]
    parts = (seconds * rates["hermetic"] / size, seconds * rates["hermetic_twice"] / (2 * size))
    return "Hermetic's start, at every size", f"{seconds:.2f} s", *(f"{part:.0%} of the time" for part in parts), ""


def _capped_share(figures: dict[str, Any]) -> str:
    return (
        f"From a share that caps each of {figures['files']} files at {figures['cap_MBps']:g} MB/s, a mount whose "
        f"answers wait, cp copies at {figures['cp_MBps']:g} MB/s, one file after the other, and `hermetic stage` at "
        f"{figures['hermetic_MBps']:g} MB/s: {figures['of_cp']:g} times as fast, and {figures['of_the_cap']:.2f} of "
        "what the share gives to all files together.\n"
    )


def _met(most: float, goal: float) -> str:
    return "within reach" if most >= goal else "physically out of reach"

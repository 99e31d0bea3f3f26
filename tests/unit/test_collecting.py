"""The loop: judge, ask what was wanted, judge again; it ends, it asks nothing twice, and no source is left out."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from functools import partial

import pytest

from hermetic.audit.estate.estate import Estate
from hermetic.audit.estate.questions import Answer, Body, Question
from hermetic.audit.estate.resource import Resource
from hermetic.audit.model.findings import Evidence
from hermetic.collect.collecting import AT_ONCE, MOST_ROUNDS, PARTS, collected
from hermetic.collect.concurrency import both, side_by_side
from hermetic.errors import NeverSettled, Unreachable
from tests.fakes.progress import Progress


class Link(Resource):
    """A thing that names the next."""

    TYPE = "X/links"
    API_VERSION = "2026-01-01"

    next: str | None = None


class KubeLink(Link):
    """The same in a cluster."""

    SOURCE = "kube"


class Chain:
    """Answers with links, each of which names the next, so many of them."""

    def __init__(self, length: int) -> None:
        self.length = length
        self.asked: list[list[str]] = []

    async def answers(self, questions: Sequence[Question]) -> Mapping[Question, Answer]:
        self.asked.append([question.target for question in questions])
        return {question: self.answer(int(question.target)) for question in questions}

    def answer(self, number: int) -> Answer:
        following = str(number + 1) if number + 1 < self.length else None
        evidence = (Evidence(f"GET {number}", 200, "ab"),)
        return Answer((Body({"id": str(number), "properties": {"next": following}}, evidence),), evidence)


def _follow(estate: Estate, kind: type[Link] = Link) -> int:
    number, at = 0, "0"
    while True:
        link = estate.one(kind, at)
        if link.value is None or link.value.next is None:
            return number
        number, at = number + 1, link.value.next


async def test_questions_are_followed_to_their_end_and_none_is_asked_twice() -> None:
    chain, progress = Chain(5), Progress()
    answers, link_count = await collected("c", {"azure": chain}, _follow, progress)
    assert chain.asked == [["0"], ["1"], ["2"], ["3"], ["4"]]
    assert progress.rounds == [1] * 5
    estate = Estate("c", ("azure",), answers)
    assert link_count == _follow(estate) == 4
    assert not estate.wanted


async def test_each_source_is_asked_what_is_meant_for_it() -> None:
    azure, kube = Chain(2), Chain(3)
    answers, _ = await collected(
        "c",
        {"azure": azure, "kube": kube},
        lambda estate: (_follow(estate), _follow(estate, KubeLink)),
        Progress(),
    )
    assert (azure.asked, kube.asked) == ([["0"], ["1"]], [["0"], ["1"], ["2"]])
    assert {question.source for question in answers} == {"azure", "kube"}


async def test_a_source_that_was_left_out_is_not_wanted_either() -> None:
    assert await collected("c", {}, _follow, Progress()) == ({}, 0)


async def test_checks_that_want_for_ever_do_not_collect_for_ever() -> None:
    chain = Chain(10_000)
    with pytest.raises(NeverSettled):
        await collected("c", {"azure": chain}, _follow, Progress())
    assert len(chain.asked) == MOST_ROUNDS


async def test_an_answerer_that_leaves_a_question_open_is_a_defect_and_no_loop() -> None:
    class Silent(Chain):
        async def answers(self, questions: Sequence[Question]) -> Mapping[Question, Answer]:
            self.asked.append([question.target for question in questions])
            return {}

    silent = Silent(1)
    with pytest.raises(NeverSettled, match="left 1 questions open"):
        await collected("c", {"azure": silent}, _follow, Progress())
    assert len(silent.asked) == 1


async def test_an_answer_may_be_corrected_later() -> None:
    class Corrects(Chain):
        async def answers(self, questions: Sequence[Question]) -> Mapping[Question, Answer]:
            answers = dict(await super().answers(questions))
            if questions[0].target == "1":
                first = Question("azure", "get", Link.TYPE, "0", Link.API_VERSION)
                answers[first] = self.answer(7)
            return answers

    answers, _ = await collected("c", {"azure": Corrects(2)}, _follow, Progress())
    assert [answer.bodies[0].value["id"] for answer in answers.values()] == ["7", "1"]


async def test_of_very_many_questions_a_part_is_asked_and_what_follows_from_it_before_the_rest() -> None:
    many = AT_ONCE * PARTS + PARTS

    def judge(estate: Estate) -> None:
        for number in range(many):
            if (link := estate.one(Link, str(number))).value is not None and number == 0:
                estate.one(KubeLink, link.value.id)

    azure, kube = Chain(0), Chain(0)
    answers, _ = await collected("c", {"azure": azure, "kube": kube}, judge, Progress())
    assert [len(questions) for questions in azure.asked] == [AT_ONCE + 1, AT_ONCE - 1, AT_ONCE, 3]
    assert azure.asked[0] == [str(number) for number in range(AT_ONCE + 1)]
    assert kube.asked == [["0"]]
    assert len(answers) == many + 1


def test_what_was_asked_for_bears_the_spelling_of_each_that_asks() -> None:
    """Which check asks first changes from round to round; what each says of a resource must not."""
    question = Question("azure", "get", Link.TYPE, "/Groups/A", Link.API_VERSION)
    estate = Estate("c", ("azure",), {question: Answer((Body({"id": "/groups/a"}, ()),), ())})
    for spelling in ("/Groups/A", "/groups/A", "/GROUPS/A"):
        assert estate.one(Link, spelling).target == spelling
        assert estate.every(Link, spelling).target == spelling


class Derives:
    """Two readers of one derivation, which follows links, and how often each part ran."""

    def __init__(self) -> None:
        self.ran = {"derivation": 0, "first": 0, "second": 0, "other": 0}

    def judge(self, estate: Estate) -> tuple[int, ...]:
        return tuple(estate.once(("judged", name), partial(self._of, name, estate)) for name in list(self.ran)[1:])

    def _of(self, name: str, estate: Estate) -> int:
        self.ran[name] += 1
        if name == "other":
            return estate.one(Link, "0").value is not None
        return estate.once("derived", partial(self._derived, estate))

    def _derived(self, estate: Estate) -> int:
        self.ran["derivation"] += 1
        return _follow(estate)


async def test_what_wants_no_more_is_not_derived_again_and_what_shares_an_open_derivation_is() -> None:
    chain, derives = Chain(3), Derives()
    judged: list[tuple[int, ...]] = []
    await collected("c", {"azure": chain}, lambda estate: judged.append(derives.judge(estate)), Progress())
    assert chain.asked == [["0"], ["1"], ["2"]]
    assert judged == [(0, 0, 0), (1, 1, 1), (2, 2, 1), (2, 2, 1)]
    assert derives.ran == {"derivation": 4, "first": 4, "second": 4, "other": 2}


def test_everything_is_derived_again_where_an_answer_was_replaced() -> None:
    chain, derives = Chain(2), Derives()
    questions = [Question("azure", "get", Link.TYPE, str(number), Link.API_VERSION) for number in range(2)]
    estate = Estate("c", ("azure",), {question: chain.answer(int(question.target)) for question in questions})
    assert derives.judge(estate) == (1, 1, 1)
    corrected = estate.with_answers({questions[0]: Chain(1).answer(0)})
    assert derives.judge(corrected) == (0, 0, 1)
    assert derives.ran == {"derivation": 2, "first": 2, "second": 2, "other": 2}
    assert derives.judge(corrected.with_answers({})) == (0, 0, 1)
    assert derives.ran["derivation"] == 2


def test_what_raises_in_a_derivation_is_wanted_all_the_same() -> None:
    def fails(estate: Estate) -> None:
        estate.one(Link, "0")
        raise ZeroDivisionError

    estate = Estate("c", ("azure",), {})
    for _ in range(2):
        with pytest.raises(ZeroDivisionError):
            estate.once("outer", lambda: estate.once("inner", partial(fails, estate)))
    assert [question.target for question in estate.wanted.values()] == ["0"]


async def test_what_fails_first_comes_out_itself_and_ends_the_others() -> None:
    ended = []

    async def waits() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            ended.append(True)

    async def fails() -> None:
        raise Unreachable("no answer")

    with pytest.raises(Unreachable):
        await both(side_by_side([waits(), fails()]), waits())
    assert ended == [True, True]

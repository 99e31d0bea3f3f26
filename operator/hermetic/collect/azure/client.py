"""ARM client: rate limits, retries within the budget, and renewal of an expired token."""

from __future__ import annotations

import asyncio

from hermetic.audit.estate.questions import Problem, UnreadReason
from hermetic.collect.azure.credentials import Tokens
from hermetic.collect.azure.rate_limits import Pacing, RetryBudget, Sleep
from hermetic.collect.azure.replies import ArmReply, Ask, RequestAttempt, may_pass, reply_of, wait_asked
from hermetic.collect.azure.transport import ArmTransport
from hermetic.errors import Unreachable
from hermetic.ports import AuditProgress, Clock


class Caller:
    """The caller's token, and whether ARM accepts it.

    Until `is_known`, a refused token ends the audit; from then on it only ends further requests.
    """

    def __init__(self, tokens: Tokens) -> None:
        self._tokens = tokens
        self._renewing = asyncio.Lock()
        self._was_renewed = False
        self.is_known = False
        self.is_refused = False

    async def token(self) -> str:
        """The token to send; "" when none can be obtained any more during the audit."""
        try:
            return await self._tokens.current()
        except Unreachable:
            if not self.is_known:
                raise
            self.is_refused = True
            return ""

    async def can_go_on(self, refused: str) -> bool:
        """Whether there is another token than the refused one. At most one new token is requested."""
        async with self._renewing:
            if self.is_refused:
                return False
            if self._was_renewed and await self._tokens.current() != refused:
                return True
            if self._was_renewed or not await self._tokens.another():
                self.is_refused = True
                return False
            self._was_renewed = True
            return True


class ArmClient:
    """GETs and read-only POSTs of one management endpoint. A failure is returned as a reply with a problem."""

    def __init__(  # noqa: PLR0913 - the session passes each part once
        self,
        wire: ArmTransport,
        caller: Caller,
        pacing: Pacing,
        patience: RetryBudget,
        *,
        clock: Clock,
        sleep: Sleep,
        progress: AuditProgress,
    ) -> None:
        self.wire, self.caller = wire, caller
        self.clock, self.sleep, self.progress = clock, sleep, progress
        self._pacing, self._patience = pacing, patience
        self._was_answered = False

    def renew_patience(self) -> None:
        """Begin the retry budget anew, for the next of several audits."""
        self._patience.renew()

    async def ask(self, ask: Ask, *, until: float | None = None) -> ArmReply:
        """The answer, or a reply with a problem; retried within the budget, and not beyond `until` (monotonic).

        Raises Unreachable where no request can succeed: the endpoint does not answer, or ARM refuses the token.
        """
        tries = 0
        while True:
            if self.caller.is_refused:
                return self._without_a_token(ask)
            if self._pacing.is_barred(ask.lane):
                return ArmReply(ask).but(UnreadReason.UNAVAILABLE, "asked too often, and the retry budget is spent")
            token = await self.caller.token()
            attempt = await self._attempt(ask, token) if token else None
            if attempt is None:
                continue
            reply = reply_of(ask, attempt)
            tries += 1
            self._must_be_reachable(attempt)
            if attempt.status == 401:
                if await self.caller.can_go_on(token):
                    continue
                self._must_be_known(reply)
                return reply
            if may_pass(reply) and await self._waited(reply, tries, until):
                continue
            if not self._was_answered:
                raise self._unreachable(attempt)
            return reply

    async def _attempt(self, ask: Ask, token: str) -> RequestAttempt | None:
        """One attempt; None if the token was refused to another request while this one waited for its turn."""
        async with self._pacing.turn(ask.lane) as reply_headers:
            if self.caller.is_refused:
                return None
            began = self.clock.monotonic()
            attempt = await self.wire.send(ask, token)
            reply_headers.update({name.lower(): value for name, value in attempt.headers.items()})
        self.progress.answered(ask.request_line, self.clock.monotonic() - began)
        return attempt

    async def _waited(self, reply: ArmReply, tries: int, until: float | None) -> bool:
        """Wait before the next attempt; False, at once, when there is none."""
        now = self.clock.monotonic()
        seconds = self._patience.before_the_next(tries, wait_asked(reply.headers, self.clock.now()))
        is_throttled = reply.status == 429
        if until is not None and now + seconds > until:
            return False
        if not self._patience.grants(now, seconds):
            if is_throttled:
                self._pacing.bar(reply.ask.lane, seconds)
            return False
        self.progress.waits(f"{reply.ask.request_line}: {reply.status or 'no answer'}, again", seconds)
        if is_throttled:
            self._pacing.close(reply.ask.lane, seconds)
        else:
            await self.sleep(seconds)
        return True

    def _must_be_reachable(self, attempt: RequestAttempt) -> None:
        self._was_answered = self._was_answered or attempt.status is not None or attempt.began
        if attempt.never_arrived and not self._was_answered:
            raise self._unreachable(attempt)

    def _unreachable(self, attempt: RequestAttempt) -> Unreachable:
        return Unreachable(
            f"{self.wire.endpoint} cannot be reached: {attempt.error}",
            fix="Check the network and proxy of this machine, and --arm-endpoint.",
        )

    def _must_be_known(self, reply: ArmReply) -> None:
        if not self.caller.is_known:
            detail = reply.problem.detail if reply.problem else ""
            raise Unreachable(
                f"{self.wire.endpoint} rejected the token: {detail}",
                fix="Log in again ('az login'), or put a token that is valid there into HERMETIC_ARM_TOKEN.",
            )

    @staticmethod
    def _without_a_token(ask: Ask) -> ArmReply:
        detail = f"{ask.request_line}: not sent, the token has expired or was revoked during the audit"
        return ArmReply(ask, problem=Problem(UnreadReason.UNAUTHENTICATED, detail, ""))

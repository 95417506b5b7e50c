"""Whatever happens, every ceiling stays where it may be, and nothing is counted twice."""

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from rollbook.dispatch.ceilings import Ceilings, Verdict
from thoroughness import examples

SERVERS = ("a", "b")
MOST = 300
numbers = st.integers(1, 400)


class Run(RuleBasedStateMachine):
    """A run that sends, ends, waits and is told things in any order; it sends only where there is room."""

    @initialize(hard=st.none() | numbers, auto=st.booleans(), floor=st.integers(1, 40))
    def start(self, hard, auto, floor):
        self.now, self.hard, self.auto, self.floor = 0.0, hard, auto, floor
        self.out = dict.fromkeys(SERVERS, 0)
        self.held = dict.fromkeys(SERVERS, 0.0)
        self.limits = []
        self.ceilings = Ceilings(hard, auto=auto, floor=floor, most=MOST, told=self.limits.append)

    @rule(server=st.sampled_from(SERVERS), count=st.integers(1, 500))
    def send(self, server, count):
        for _ in range(count):
            if not self.ceilings.has_room(server, self.now):
                break
            assert self.now >= self.held[server]
            self.ceilings.began(server)
            self.out[server] += 1
            assert self.cap is None or sum(self.out.values()) <= self.cap

    @rule(
        server=st.sampled_from(SERVERS),
        share=st.floats(0, 1),
        seconds=st.floats(0, 100),
        verdict=st.sampled_from(Verdict),
        retry_after=st.none() | st.floats(0, 100),
    )
    def end(self, server, share, seconds, verdict, retry_after):
        for _ in range(round(self.out[server] * share)):
            self.ceilings.ended(server, seconds, verdict, self.now, retry_after)
            self.out[server] -= 1
            if verdict is Verdict.REFUSED and retry_after is not None:
                self.held[server] = max(self.held[server], self.now + retry_after)

    @rule(seconds=st.floats(0, 60), lag=st.floats(0, 1))
    def wait(self, seconds, lag):
        self.now += seconds
        self.ceilings.tick(self.now, lag)

    @rule(waiting=st.floats(0, 1000), running=st.floats(0, 1000))
    def hear(self, waiting, running):
        self.ceilings.heard((waiting, running), self.now)

    @rule(hard=st.none() | numbers, auto=st.booleans())
    def change(self, hard, auto):
        if self.cap is None or (hard is not None and hard < self.cap):
            return
        self.hard, self.auto = hard, auto
        self.ceilings.change(hard, self.now, auto=auto)

    @property
    def cap(self):
        return self.hard if self.hard is not None else MOST if self.auto else None

    @invariant()
    def every_ceiling_is_where_it_may_be(self):
        limits = [self.ceilings.limit, *(self.ceilings.limit_of(server) for server in SERVERS)]
        if self.cap is None:
            assert limits == [None] * 3
        else:
            assert all(min(self.floor, self.cap) <= limit <= self.cap for limit in limits)

    @invariant()
    def what_is_in_flight_is_what_was_sent_and_did_not_end(self):
        assert self.ceilings.in_flight == sum(self.out.values()) >= 0

    @invariant()
    def the_history_is_what_was_told(self):
        assert list(self.ceilings.history) == self.limits[:256]


TestRun = Run.TestCase
TestRun.settings = settings(max_examples=examples(60), stateful_step_count=30, deadline=None)

"""The invariants of docs/contributors/faults.md about one user's count."""

from __future__ import annotations

import bisect
from collections import defaultdict
from collections.abc import Iterable
from typing import Any

from history import NEVER, SECOND, Effect, History, Op, Violation


class Sums:
    """Sum of n over items whose time is before an instant."""

    def __init__(self, items: Iterable[tuple[int, int]]) -> None:
        ordered = sorted(items)
        self.times = [time for time, _ in ordered]
        self.totals = [0]
        for _, n in ordered:
            self.totals.append(self.totals[-1] + n)

    def before(self, time: int) -> int:
        return self.totals[bisect.bisect_left(self.times, time)]

    def until(self, time: int) -> int:
        return self.totals[bisect.bisect_right(self.times, time)]


def refusing(op: Op) -> str:
    """The allowance that refused a request."""
    kind = op.fields.get("reason", "").partition("_")[0]
    return kind if kind in ("model", "member") else "period"


def named(key: dict[str, Any]) -> tuple[str | None, str | None]:
    """The model and the member of a stored key."""
    parts = key.get("parts") or {}
    return parts.get("model", {}).get("name"), parts.get("member", {}).get("name")


class UserCheck:
    """Checks one user, whose requests affect no other user's count."""

    # Of which allowance a refusal must speak to be about this count, and how violations call it.
    kind = "period"
    name = ""

    def __init__(self, history: History, user: str, ops: list[Op]) -> None:
        self.history = history
        self.user = user
        self.ops = [op for op in ops if op.verb not in ("RESET", "LIMIT")]
        resets = [op for op in ops if op.verb == "RESET" and op.code is None]
        self.resets = [op for op in resets if not (op.model or op.member)]
        # Of a model or a member alone.
        self.part_resets = [op for op in resets if op.model or op.member]
        self.limit_changes = [op for op in ops if op.verb == "LIMIT" and op.code is None]
        self.start_limit = history.limits.get(user)
        self.keys = history.keys.get(user, {})
        self.rows = history.rows.get(user, [])
        self.prepare()

    def prepare(self) -> None:
        self.violations: list[Violation] = []
        self.attempts: dict[tuple[str, str], list[Op]] = defaultdict(list)
        for op in self.ops:
            if op.key is not None:
                self.attempts[op.verb, op.key].append(op)
        self.holds = self.effects_of("RESERVE", "HELD")
        self.counts = self.effects_of("CONSUME", "ALLOWED") + self.effects_of("COMMIT", "ALLOWED")
        self.releases = [op for op in self.ops if op.verb == "RELEASE"]
        counted_keys = {effect.key for effect in self.counts if effect.key}
        # Releases of possibly counted messages that succeeded, or whose outcome is unknown.
        self.released = [op for op in self.releases if op.key in counted_keys and (op.is_unknown or op.status == "OK")]

    def fail(self, invariant: str, text: str, *evidence: Op) -> None:
        self.violations.append(Violation(invariant, f"user {self.user}{self.name}: {text}", evidence=list(evidence)))

    # Effects, with the earliest and latest possible instants ------------------------------------------------------

    def effects_of(self, verb: str, granted: str) -> list[Effect]:
        effects = []
        for op in self.ops:
            if op.verb == verb and op.key is None:
                effect = self.effect([op], granted)
                if effect:
                    effects.append(effect)
        for (key_verb, key), attempts in self.attempts.items():
            if key_verb != verb:
                continue
            # Attempts with another n or other parts are conflicts by design, unless they were granted, which check_keys finds.
            by_request: dict[tuple[object, ...], list[Op]] = defaultdict(list)
            for op in attempts:
                by_request[op.request].append(op)
            for same in by_request.values():
                effect = self.effect(same, granted)
                if effect:
                    effect.key = key
                    effects.append(effect)
        return effects

    def effect(self, attempts: list[Op], granted: str) -> Effect | None:
        grants = [op for op in attempts if op.status == granted and op.is_grant]
        unknowns = [op for op in attempts if op.is_unknown]
        if not grants and not unknowns:
            return None
        n = attempts[0].messages
        if not grants:
            stored = self.stored(attempts[0])
            if stored == "no":
                return None
            first = min(op.sent for op in unknowns)
            # A later refused attempt proves that the earlier ones had not counted by then, not that they never will: a lost
            # transaction may still be running.
            key = self.keys.get(attempts[0].key or "", {})
            return Effect(n=n, first=first, last=NEVER, is_certain=stored == "yes", used=None, period=key.get("period"), attempts=attempts)
        originals = [op for op in grants if not op.is_replay]
        first = originals[0].sent if originals else min(op.sent for op in unknowns + grants)
        last = min(op.replied for op in grants)
        return Effect(
            n=n,
            first=first,
            last=last,
            is_certain=True,
            used=grants[0].number("used"),
            period=grants[0].fields.get("period"),
            attempts=attempts,
        )

    def stored(self, op: Op) -> str:
        """Whether a keyed operation took effect, according to the final keys."""
        if not self.history.is_final or op.key is None:
            return "perhaps"
        key = self.keys.get(op.key)
        if key is None or (op.verb != "COMMIT" and key["messages"] != op.messages) or named(key) != (op.model, op.member):
            return "no"
        if op.verb == "RESERVE" and key["verb"] == "r":
            return "yes"
        if op.verb == "CONSUME" and key["verb"] == "c":
            return "yes"
        if op.verb == "COMMIT" and key["verb"] == "r":
            return "yes" if key["committed"] == op.messages else "no"
        return "no"

    # Bounds of the count during an operation ---------------------------------------------------------------------------

    def prepare_bounds(self) -> None:
        periods = {effect.period for effect in self.counts}
        periods |= {op.fields.get("period") for op in self.ops if "period" in op.fields}
        self.certain_by_last: dict[str | None, Sums] = {}
        self.certain_by_first: dict[str | None, Sums] = {}
        self.possible_by_first: dict[str | None, Sums] = {}
        self.possible_by_last: dict[str | None, Sums] = {}
        for period in periods:
            certain = [e for e in self.counts if e.is_certain and e.period == period]
            possible = [e for e in self.counts if e.period in (period, None)]
            self.certain_by_last[period] = Sums((e.last, e.n) for e in certain)
            self.certain_by_first[period] = Sums((e.first, e.n) for e in certain)
            self.possible_by_first[period] = Sums((e.first, e.n) for e in possible)
            self.possible_by_last[period] = Sums((e.last, e.n) for e in possible)
        self.released_by_sent = Sums((op.sent, self.released_at_most(op)) for op in self.released)

    def released_at_most(self, op: Op) -> int:
        if op.status == "OK":
            return op.released
        return max((e.n for e in self.counts if e.key == op.key), default=0)

    def lower_bound(self, period: str | None, sent: int, replied: int) -> int:
        """A lower bound of the count at some instant between `sent` and `replied`."""
        if period not in self.certain_by_last:
            return 0
        total = self.certain_by_last[period].before(sent)
        seen = [reset for reset in self.resets if reset.sent < replied]
        if seen:
            # Messages that may have been counted before the last possible reset are subtracted.
            latest = max(reset.replied for reset in seen)
            total -= self.certain_by_first[period].until(latest)
        return max(total - self.released_by_sent.before(replied), 0)

    def upper_bound(self, period: str | None, sent: int, replied: int) -> int:
        """An upper bound of the count at every instant between `sent` and `replied`."""
        if period not in self.possible_by_first:
            return sum(e.n for e in self.counts if e.period is None and e.first < replied)
        total = self.possible_by_first[period].before(replied)
        done = [reset for reset in self.resets if reset.replied < sent]
        if done:
            total -= self.possible_by_last[period].before(max(reset.sent for reset in done))
        return total

    def held_at_most(self, op: Op) -> int:
        total = 0
        for hold in self.holds:
            if hold.first >= op.replied or hold.key == op.key and op.verb == "RESERVE":
                continue
            ttl = max(attempt.ttl for attempt in hold.attempts)
            if hold.last + ttl * SECOND < op.sent:
                continue
            ended = [
                attempt.replied
                for verb in ("COMMIT", "RELEASE")
                for attempt in self.attempts.get((verb, hold.key or ""), [])
                if attempt.status in ("ALLOWED", "OK")
            ]
            if ended and min(ended) < op.sent:
                continue
            total += hold.n
        return total

    def limits_during(self, op: Op) -> set[int] | None:
        """Limits that may have been in force at some instant of a call."""
        if self.start_limit is None:
            return None
        done = [change for change in self.limit_changes if change.replied < op.sent]
        # One operator makes changes one after the other; the last completed one replaced the earlier ones.
        latest = max(done, key=lambda change: change.sent, default=None)
        limits = {latest.new_limit if latest and latest.new_limit is not None else self.start_limit}
        for change in self.limit_changes:
            if change.new_limit is not None and change.replied >= op.sent and change.sent < op.replied:
                limits.add(change.new_limit)
        return limits

    # Invariants -----------------------------------------------------------------------------------------------------------

    def check(self) -> list[Violation]:
        self.check_count()
        self.check_holds()
        self.check_periods()
        return self.violations

    def check_count(self) -> None:
        self.prepare_bounds()
        self.check_grants()
        self.check_refusals()
        self.check_reads()
        self.check_order()
        self.check_keys()
        if self.history.is_final:
            self.check_stored_keys()
            self.check_rows()

    def check_grants(self) -> None:
        """I1, by the fields of each grant."""
        for op in self.ops:
            if op.verb not in ("CONSUME", "RESERVE") or not op.is_grant or op.is_replay:
                continue
            used, limit = op.number("used"), op.number("limit")
            if used is None or limit is None:
                continue
            if used + op.held > limit:
                self.fail("I1", f"granted at used {used} + held {op.held} over the limit {limit}", op)
            remaining = op.number("remaining")
            if remaining is not None and remaining != limit - used - op.held:
                self.fail("I1", f"remaining is {remaining} where {limit} - {used} - {op.held} remain", op)
            allowed = self.limits_during(op)
            if allowed is not None and limit not in allowed and len({e.period for e in self.counts}) <= 1:
                self.fail("I1", f"limit {limit} was not in force during the call, only {sorted(allowed)}", op)

    def check_refusals(self) -> None:
        """I6: a refused request did not fit."""
        for op in self.ops:
            if op.status != "BLOCKED" or "limit" not in op.fields or refusing(op) != self.kind:
                continue
            used, limit = op.number("used") or 0, op.number("limit") or 0
            if used + op.held + op.messages <= limit:
                self.fail("I6", f"blocked though used {used} + held {op.held} + {op.messages} is within {limit}", op)
                continue
            limits = self.limits_during(op)
            if limits is None:
                continue
            most = self.upper_bound(op.fields.get("period"), op.sent, op.replied) + self.held_at_most(op)
            least = min(limits)
            if self.kind == "period" and len({e.period for e in self.counts}) > 1:
                # Balances may have been used up in another period.
                least -= self.history.granted.get(self.user, 0)
            if most + op.messages <= least:
                self.fail("I6", f"blocked, but at most {most} can have been used of {least}", op)

    def check_reads(self) -> None:
        """I7 and I2: every answered `used` is between the certain and the possible count."""
        for op in self.ops:
            used = op.number("used")
            # A release is answered with the count of the current period, which may not be the key's.
            if used is None or op.is_replay:
                continue
            period = op.fields.get("period")
            lower, upper = self.lower_bound(period, op.sent, op.replied), self.upper_bound(period, op.sent, op.replied)
            if used < lower:
                missing = [e.grant for e in self.counts if e.is_certain and e.period == period and e.last < op.sent]
                self.fail("I7", f"sees used {used}, but {lower} were counted before it was sent", op, *missing[-2:])
            elif used > upper:
                self.fail("I2", f"sees used {used}, but at most {upper} were requested by then", op)

    def epochs(self, effects: list[Effect]) -> list[list[Effect]]:
        """Groups of effects that certainly happened between the same two resets."""
        if not self.resets:
            return [effects]
        groups: dict[int, list[Effect]] = defaultdict(list)
        for effect in effects:
            before = [reset for reset in self.resets if reset.replied < effect.first]
            after = [reset for reset in self.resets if reset.sent > effect.last]
            if len(before) + len(after) == len(self.resets):
                groups[len(before)].append(effect)
        return list(groups.values())

    def check_order(self) -> None:
        """I3: each count is answered once, in real-time order, without unexplained gaps."""
        if self.released:
            return
        for period in {e.period for e in self.counts if e.used is not None}:
            inside = [e for e in self.counts if e.period == period and e.used is not None]
            for group in self.epochs(inside):
                self.check_sequence(period, group)

    def check_sequence(self, period: str | None, group: list[Effect]) -> None:
        # A commit of 0 messages comes after the one that made the count what it answers.
        group.sort(key=lambda e: (e.used or 0, (e.used or 0) - e.n, e.first))
        gaps, previous, latest = 0, None, None
        for effect in group:
            start = (effect.used or 0) - effect.n
            reached = 0 if previous is None else previous.used or 0
            if previous is not None and start < reached:
                self.fail("I3", f"used {reached} and {effect.used} overlap", previous.grant, effect.grant)
            if latest is not None and effect.last < latest.first:
                self.fail("I3", f"used {effect.used} was answered before used {latest.used} was requested", effect.grant, latest.grant)
            gaps += max(start - reached, 0)
            previous = effect
            if latest is None or effect.first > latest.first:
                latest = effect
        unexplained = sum(e.n for e in self.counts if e.used is None and e.period in (period, None))
        if not self.resets and gaps > unexplained:
            self.fail("I3", f"{gaps} counts were never handed out, only {unexplained} have unknown outcomes")

    def check_keys(self) -> None:
        """I4: a key has one effect and always the same answer; other requests with it are conflicts."""
        for (verb, key), attempts in self.attempts.items():
            if verb == "RELEASE":
                continue
            grants = [op for op in attempts if op.is_grant]
            originals = [op for op in grants if not op.is_replay]
            if len(originals) > 1:
                self.fail("I4", f"key {key} was granted {len(originals)} times", *originals)
            for op in grants[1:]:
                if not self.has_same_numbers(grants[0], op):
                    self.fail("I4", f"key {key} was answered differently", grants[0], op)
                if op.request != grants[0].request:
                    self.fail("I4", f"key {key} was granted for {grants[0].request} and for {op.request}", grants[0], op)
            if grants:
                known = min(op.replied for op in grants)
                for op in attempts:
                    if op.status == "BLOCKED" and op.sent > known:
                        self.fail("I4", f"key {key} was refused after it was granted", grants[0], op)
                    if op.request != grants[0].request and op.sent > known and op.status in ("ALLOWED", "HELD", "BLOCKED"):
                        self.fail("I4", f"key {key} was no conflict with another request", grants[0], op)
            released = [op for op in self.attempts.get(("RELEASE", key), []) if op.status == "OK"]
            for op in grants if verb != "COMMIT" else []:
                for release in released:
                    if release.replied < op.sent:
                        self.fail("I4", f"key {key} was granted after it was released", release, op)
        consumed = {key for verb, key in self.attempts if verb == "CONSUME"}
        for key in consumed & {key for verb, key in self.attempts if verb == "RESERVE"}:
            both = [op for verb in ("CONSUME", "RESERVE") for op in self.attempts[verb, key] if op.is_grant]
            if len({op.verb for op in both}) > 1:
                self.fail("I4", f"key {key} was granted under two verbs", *both)

    def has_same_numbers(self, first: Op, repetition: Op) -> bool:
        same = ("used", "held", "limit", "remaining", "period")
        return [repetition.fields.get(name) for name in same] == [first.fields.get(name) for name in same]

    def check_holds(self) -> None:
        """I8: a hold ends once."""
        for op in self.ops:
            if op.fields.get("held", "0").startswith("-"):
                self.fail("I8", "held is negative", op)
        for hold in self.holds:
            key = hold.key or ""
            commits = self.attempts.get(("COMMIT", key), [])
            releases = self.attempts.get(("RELEASE", key), [])
            ttl = max(op.ttl for op in hold.attempts) * SECOND
            released_messages = sum(op.released for op in releases if op.status == "OK")
            if hold.n < released_messages:
                self.fail("I8", f"key {key} held {hold.n} and gave back {released_messages}", *releases)
            committed = next((op.messages for op in commits if op.is_grant), hold.n)
            if committed < released_messages:
                self.fail("I8", f"key {key} counted {committed} and gave back {released_messages}", *commits, *releases)
            if not any(op.status == "ALLOWED" or op.is_unknown for op in commits):
                for op in hold.attempts:
                    if op.status == "HELD" and hold.last + ttl < op.sent:
                        self.fail("I8", f"key {key} was held again after it had expired", hold.grant, op)
            for op in commits:
                if op.status == "ALLOWED" and not op.is_replay:
                    released = [r for r in releases if r.status == "OK" and r.replied < op.sent]
                    if released:
                        self.fail("I8", f"key {key} was committed after it was released", released[0], op)
                    if hold.last + ttl < op.sent:
                        self.fail("I8", f"key {key} was committed after it had expired", hold.grant, op)
                # An earlier attempt whose outcome is unknown cannot end a hold early, so this needs no exception.
                if op.code == "EXPIRED" and op.replied < hold.first + ttl:
                    self.fail("I8", f"key {key} expired before its time", hold.grant, op)

    def check_periods(self) -> None:
        """I10: periods do not go back. Labels of months compare as text."""
        shown = [
            op for op in self.ops
            if op.fields.get("period", "")[:1].isdigit() and not op.is_replay and op.verb not in ("COMMIT", "RELEASE")
        ]
        shown.sort(key=lambda op: op.replied)
        latest: Op | None = None
        by_reply = iter(shown)
        pending = next(by_reply, None)
        for op in sorted(shown, key=lambda op: op.sent):
            while pending is not None and pending.replied < op.sent:
                if latest is None or pending.fields["period"] > latest.fields["period"]:
                    latest = pending
                pending = next(by_reply, None)
            if latest is not None and op.fields["period"] < latest.fields["period"]:
                self.fail("I10", f"the period went back from {latest.fields['period']} to {op.fields['period']}", latest, op)

    # The final state of the database ------------------------------------------------------------------------------------

    def check_stored_keys(self) -> None:
        """I5 for keyed operations: answered effects are stored."""
        for effect in self.counts + self.holds:
            if effect.key is None or not effect.is_certain:
                continue
            key = self.keys.get(effect.key)
            grant = effect.grant
            if key is None:
                self.fail("I5", f"key {effect.key} was granted and is not in the database", grant)
            elif grant.verb == "COMMIT" and key["committed"] != grant.messages:
                self.fail("I5", f"key {effect.key} was committed, and is stored with {key['committed']} messages", grant)
            elif grant.verb != "COMMIT" and effect.used is not None and key["used"] != effect.used:
                self.fail("I4", f"key {effect.key} is stored with used {key['used']}", grant)
        for name, key in self.keys.items():
            verb = "CONSUME" if key["verb"] == "c" else "RESERVE"
            attempts = self.attempts.get((verb, name), [])
            if attempts and not any(op.is_grant or op.is_unknown for op in attempts):
                self.fail("I2", f"key {name} counts though every answer said that nothing was counted", *attempts)
            elif not attempts:
                self.fail("I2", f"key {name} is in the database, but was never sent")

    def check_rows(self) -> None:
        """I2, I5, I8, I9: the counts at the end."""
        end = self.history.end or 0
        stored = {row["period"]: row for row in self.rows}
        for period in {e.period for e in self.counts if e.is_certain} | set(stored):
            row = stored.get(period) if period is not None else None
            count = row["count"] if row else 0
            lower, upper = self.lower_bound(period, end, end), self.upper_bound(period, end, end)
            if period in self.certain_by_first and not self.resets:
                upper -= sum(op.released for op in self.released if op.status == "OK")
            recent = [e.grant for e in self.counts if e.is_certain and e.period == period][-3:]
            if count < lower:
                self.fail("I5", f"period {period} has {count}, but {lower} were answered as counted", *recent)
            elif count > upper:
                self.fail("I2", f"period {period} has {count}, but at most {upper} can have been counted", *recent)
            if row:
                self.check_row(row, count)

    def check_row(self, row: dict[str, Any], count: int) -> None:
        if row["held"] < 0 or count < 0:
            self.fail("I8", f"held is {row['held']} and the count {count}")
        highest = max([self.start_limit or 0] + [change.new_limit or 0 for change in self.limit_changes])
        if self.start_limit is not None and count > highest:
            self.fail("I1", f"{count} were counted where the limit never was over {highest}")
        unkeyed = any(op.verb == "CONSUME" and op.key is None and (op.is_grant or op.is_unknown) for op in self.ops)
        if unkeyed:
            return
        # Every message has a key, and each key has the generation of the row in which it was counted.
        expected = sum(
            key["messages"] if key["committed"] is None else key["committed"] for key in self.keys.values()
            if key["status"] == "c" and key["period"] == row["period"] and key["generation"] == row["generation"]
        )
        if count != expected:
            invariant = "I9" if self.resets else "I2"
            self.fail(invariant, f"period {row['period']} has {count} where its keys add up to {expected}")

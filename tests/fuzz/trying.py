"""Tries programs and finds the smallest one that fails."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from tests.fuzz.axes import Values, sensible, shown
from tests.fuzz.judging import Kind, Outcome, after_running, before_running, differences
from tests.fuzz.programs import files, with_comments
from tests.fuzz.sides import Migration, Run, Setting, Texts, migrate, run_sides
from tests.rewording.layers_and_drivers import REWORDINGS
from tests.rewording.rewordings import reword

_WORDS = "weather"
#: How often the original of a program that came out different is run once more: its noise is a race, seen by chance.
_REPEATS = 3


@dataclass(frozen=True)
class Trial:
    """A program and what came of it; what its original did, if that was run."""

    values: Values
    texts: Texts
    migration: Migration
    outcome: Outcome
    original: Run | None = None


def attempt(programs: Sequence[Values], setting: Setting) -> list[Trial]:
    """Migrates the programs, runs both sides of those that were migrated, and compares.

    A program with a comment is also migrated with other words in it: what the tool makes of it must not depend on them.
    """
    texts = [_said(values, setting) for values in programs]
    migrations = migrate(texts, setting)
    outcomes = [before_running(one, migration) for one, migration in zip(texts, migrations, strict=True)]
    for at, found in ({} if setting.rewordings else _by_words(programs, migrations, setting)).items():
        outcomes[at] = found
    left = [at for at, outcome in enumerate(outcomes) if outcome is None]
    ran = run_sides([texts[at] for at in left], [migrations[at].texts for at in left], setting)
    runs = dict(zip(left, zip(*ran, strict=True), strict=True))
    judged = {
        at: after_running(*pair, migrations[at].codes, printed_only=migrations[at].bridged) for at, pair in runs.items()
    }
    apart = [at for at, outcome in judged.items() if outcome.kind is Kind.DIFFERENT]
    again, _ = run_sides([texts[at] for at in apart for _ in range(_REPEATS)], [], setting)
    for turn, at in enumerate(apart):
        repeats = again[turn * _REPEATS : (turn + 1) * _REPEATS]
        noise = [difference for run in repeats for difference in differences(runs[at][0], run)]
        if noise:
            judged[at] = Outcome(Kind.NOISY, (f"the original does not repeat itself: {noise[0]}",))
    return [
        Trial(values, texts[at], migrations[at], outcomes[at] or judged[at], runs.get(at, (None, None))[0])
        for at, values in enumerate(programs)
    ]


def _said(values: Values, setting: Setting) -> Texts:
    """The files of a program, in other words where that is asked for: the same ones for the same program."""
    texts = files(values)
    if not setting.rewordings:
        return texts
    chosen = random.Random(shown(values)).sample(sorted(REWORDINGS), setting.rewordings)
    return {name: reword(text, *chosen) or text for name, text in texts.items()}


def _by_words(programs: Sequence[Values], migrations: Sequence[Migration], setting: Setting) -> dict[int, Outcome]:
    """Which programs became another one because of the words in their comments."""
    commented = [at for at, values in enumerate(programs) if "comment" in values]
    plain = [files({**programs[at], "comment": "none"}) for at in commented]
    others = migrate([{n: with_comments(t, _WORDS) for n, t in texts.items()} for texts in plain], setting)
    # The support file of a bridge says such words itself.
    plain_names = {at: files(programs[at]).keys() for at in commented}
    found = {}
    for at, other in zip(commented, others, strict=True):
        ours, word = migrations[at], programs[at]["comment"]
        if ours.failure or other.failure:
            continue
        changed = []
        if ours.codes != other.codes:
            changed.append(f"findings {', '.join(sorted({*ours.codes} ^ {*other.codes}))} depend on a comment")
        elif any(ours.texts[n].replace(word, _WORDS) != other.texts.get(n) for n in plain_names[at]):
            changed.append("the new program depends on the words of a comment")
        if changed:
            found[at] = Outcome(Kind.DIFFERENT, (*changed, f"the word: {word}"))
    return found


def shrink(trial: Trial, setting: Setting, say: Callable[[str], None] = lambda _: None) -> Trial:
    """The smallest program that fails in the same way, by leaving axes out: first all but one, then one by one."""
    alone = [{axis: name} for axis, name in trial.values.items()]
    smallest = _failing([sensible(one) for one in alone], trial, setting)
    if smallest is not None:
        return smallest
    now = trial
    while len(now.values) > 1:
        fewer = [sensible({a: n for a, n in now.values.items() if a != left_out}) for left_out in now.values]
        found = _failing(fewer, now, setting)
        if found is None:
            return now
        now = found
        say(f"  {len(now.values)} axes left")
    return now


def _failing(candidates: Sequence[Values], trial: Trial, setting: Setting) -> Trial | None:
    """The smallest of the candidates that fails as the trial does."""
    tried = [one for one in attempt(candidates, setting) if one.outcome.kind is trial.outcome.kind]
    return min(tried, key=lambda one: len(one.values), default=None)

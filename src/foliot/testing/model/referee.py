"""Runs steps on the database and holds what comes of them against the model.

Two steps at once are right if one after the other they would have given the same answers and the
same tables, in one order or the other.
"""

import asyncio
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import permutations, product
from typing import Any

from foliot.store.database import Database
from foliot.testing.model.invariants import broken
from foliot.testing.model.state import Disagreement, StoreModel
from foliot.testing.model.steps import AnyStep
from foliot.testing.model.tables import Tables, adopt, compare, read_clocks, read_tables


class Referee:
    """Begins with empty tables; every step is taken by another connection than the last.

    `effects` counts what was brought about.
    """

    def __init__(
        self, databases: Sequence[Database], model: StoreModel, effects: Counter[str]
    ) -> None:
        self._databases, self._turn = databases, 0
        self.model = model
        self.effects = effects
        self._tables: Tables | None = None

    async def judge(self, *steps: AnyStep) -> None:
        """Run them all at once; `Disagreement` if that cannot have been."""
        before = self._tables or await read_tables(self._next())
        answers = await asyncio.gather(*(step.run(self._next()) for step in steps))
        after = await read_tables(self._next())
        if promises := broken(before, after):
            raise Disagreement("; ".join(promises))
        told = list(zip(steps, answers, strict=True))
        orders = [[*order] for order in permutations(told)]
        self.model = self._explain([*product((False, True), orders)], after)
        adopt(self.model, after)
        self._tables = after

    def _explain(
        self, stories: Sequence[tuple[bool, list[tuple[AnyStep, Any]]]], after: Tables
    ) -> StoreModel:
        disagreements = []
        for unseen, order in stories:
            model = self.model.copy()
            try:
                effects = list(_tell(model, order, after, unseen=unseen))
                compare(model, after)
            except Disagreement as error:
                disagreements.append(str(error))
                continue
            if len(order) > 1:
                effects += [f"at once: {type(step).__name__}" for step, _ in order]
                effects += ["at once: unseen"] if unseen else []
                effects += ["at once: the other first"] if order != stories[0][1] else []
            self.effects.update(effects)
            return model
        raise Disagreement("; or else ".join(dict.fromkeys(disagreements)))

    def _next(self) -> Database:
        self._turn += 1
        return self._databases[self._turn % len(self._databases)]


def _tell(
    model: StoreModel, order: list[tuple[AnyStep, Any]], after: Tables, *, unseen: bool
) -> Iterator[str]:
    """`unseen`: what the first makes claimable is there too late for the other's claim, and was
    ranked without knowing of it."""
    before = model.waiting()
    for place, (step, answer) in enumerate(order):
        others = [other for at, (other, _) in enumerate(order) if at != place]
        alone = all(step.is_alone_beside(other) for other in others)
        model.in_hand = frozenset().union(*(other.in_hand for other in others))
        yield from step.tell(model, answer, alone=alone)
        read_clocks(model, after)
        model.unseen = frozenset(model.waiting() - before if unseen else ())
    model.unseen = model.in_hand = frozenset()

"""Where the rows of a fit are: in memory, or in blocks that every pass goes through again."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from polyfid.inference.sources import MemoryRows, Rows, Sum, add_up
from polyfid.learning.fitting import Encoded, Task
from polyfid.learning.large import RowsFor
from polyfid.model.features import FeatureMap
from polyfid.model.likelihoods import Likelihood
from polyfid.rows import Points


class Source(Protocol):
    """All rows of a fit."""

    def rows_for(self, task: Task, positive: int, sample: Encoded) -> RowsFor:
        """The rows as the model of a class sees them, of which a sample is in memory."""
        ...


@dataclass(frozen=True)
class MemorySource:
    """Rows in memory; ``n_threads`` work on them, None: as many as there are processors."""

    rows: Encoded
    n_threads: int | None = None

    def rows_for(self, task: Task, positive: int, sample: Encoded) -> RowsFor:
        rows = self.rows

        def rows_for(features: FeatureMap, likelihood: Likelihood) -> Rows:
            points = Points(np.ascontiguousarray(features(rows.x)), rows.level)
            labels = task.likelihood(rows, positive).with_theta(likelihood.theta)
            return MemoryRows(points, labels, n_threads=self.n_threads)

        return rows_for


class InBlocks(ABC):
    """Rows in blocks, wherever those are."""

    @abstractmethod
    def reduce(self, function: Callable[[Encoded], Sum]) -> Sum:
        """The sum of a function of every block, which can be sent to another process."""

    def rows_for(self, task: Task, positive: int, sample: Encoded) -> RowsFor:
        def rows_for(features: FeatureMap, likelihood: Likelihood) -> Rows:
            points = Points(np.ascontiguousarray(features(sample.x)), sample.level)
            view = ModelView(task, positive, features)
            return BlockRows(points, likelihood, view, self.reduce)

        return rows_for


@dataclass(frozen=True)
class BlockSource(InBlocks):
    """Blocks that are read here; ``blocks`` begins to read them again whenever it is called."""

    blocks: Callable[[], Iterator[Encoded]]
    n_threads: int | None = None

    def reduce(self, function: Callable[[Encoded], Sum]) -> Sum:
        return add_up(((block,) for block in self.blocks()), function, self.n_threads)


@dataclass(frozen=True)
class ModelView:
    """How the model of a class sees a block. Can be sent to another process."""

    task: Task
    positive: int
    features: FeatureMap

    def __call__(self, block: Encoded) -> tuple[Points, Likelihood]:
        points = Points(np.ascontiguousarray(self.features(block.x)), block.level)
        return points, self.task.likelihood(block, self.positive)


@dataclass(frozen=True)
class Translated:
    """A function of what a model sees as a function of a block. Can be sent away, too."""

    view: ModelView
    function: Callable[[Points, Likelihood], Any]

    def __call__(self, block: Encoded) -> Any:
        return self.function(*self.view(block))


@dataclass(frozen=True)
class BlockRows:
    """Rows of a source in blocks, as a model sees them; ``points`` and ``likelihood`` of a sample.

    ``add_up_blocks`` adds a function of all blocks.
    """

    points: Points
    likelihood: Likelihood
    view: ModelView
    add_up_blocks: Callable[[Callable[[Encoded], Any]], Any]

    def reduce(self, function: Callable[[Points, Likelihood], Sum]) -> Sum:
        total: Sum = self.add_up_blocks(Translated(self.view, function))
        return total

"""The workspace of a process that builds days, opened once: settings, lake and step ledger."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field

from permalake.config import Settings
from permalake.contracts.steps import DayInputs, Step
from permalake.lake.builds import Builds
from permalake.lake.carry import Carries
from permalake.lake.database import Database
from permalake.lake.identity import open_database
from permalake.lake.reader import Reader
from permalake.lake.staged_state import StagedState
from permalake.lake.step_ledger import StepLedger
from permalake.pipeline.domain import Domain


@dataclass(frozen=True)
class Workspace:
    """One network of one domain, with the lake that it is built into.

    ``reader`` shows what is published, ``builds`` changes it, ``carries`` changes the carried tables,
    ``steps`` is the step ledger. ``database`` is the catalog database that they share, for state that a
    domain keeps beside the lake's own.
    """

    settings: Settings
    domain: Domain
    network: str
    database: Database = field(repr=False)
    reader: Reader = field(repr=False)
    builds: Builds = field(repr=False)
    carries: Carries = field(repr=False)
    steps: StepLedger = field(repr=False)

    @classmethod
    def open(cls, settings: Settings, domain: Domain, network: str) -> Workspace:
        """Open the lake and its ledger; :class:`PermalakeError` when the catalog does not answer."""
        database = open_database(settings)
        return cls(
            settings,
            domain,
            network,
            database,
            Reader(settings, database, lambda _: domain),
            Builds(settings, database, lambda _: domain),
            Carries(settings, database, lambda _: domain),
            StepLedger(database),
        )

    @property
    def inputs(self) -> DayInputs:
        """The inputs of the network's days."""
        return self.domain.inputs(self.settings, self.network)

    def staged_state(self, staged: StagedState, step: Step) -> str:
        """Return a digest of the staged tables that ``step`` works on: those that earlier steps write."""
        earlier = self.domain.steps[: self.domain.steps.index(step)]
        names = {name for earlier_step in earlier for name in earlier_step.writes}
        locations = staged.locations()
        digest = hashlib.sha256()
        for name in sorted(names & locations.keys()):
            digest.update(f"{name} {locations[name]}\0".encode())
        return digest.hexdigest()

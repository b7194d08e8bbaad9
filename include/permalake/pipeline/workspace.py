"""What a process that builds days works with, opened once: settings, lake and step ledger."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field

from permalake.config import Settings
from permalake.contracts.steps import DayInputs, Step
from permalake.lake import Attempt, Lake
from permalake.lake.step_ledger import StepLedger
from permalake.pipeline.domain import Domain


@dataclass(frozen=True)
class Workspace:
    """One network of one domain, with the lake that it is built into."""

    settings: Settings
    domain: Domain
    network: str
    lake: Lake = field(repr=False)
    steps: StepLedger = field(repr=False)

    @classmethod
    def open(cls, settings: Settings, domain: Domain, network: str) -> Workspace:
        """Open the lake and its ledger; :class:`PermalakeError` when the catalog does not answer."""
        lake = Lake(settings, lambda _: domain)
        return cls(settings, domain, network, lake, StepLedger(lake.database))

    @property
    def inputs(self) -> DayInputs:
        """What the network's days are built from."""
        return self.domain.inputs(self.settings, self.network)

    def staged_state(self, attempt: Attempt, step: Step) -> str:
        """Return a digest of the staged tables that ``step`` works on: those that earlier steps write."""
        earlier = self.domain.steps[: self.domain.steps.index(step)]
        names = {name for one in earlier for name in one.writes}
        locations = attempt.locations()
        digest = hashlib.sha256()
        for name in sorted(names & locations.keys()):
            digest.update(f"{name} {locations[name]}\0".encode())
        return digest.hexdigest()

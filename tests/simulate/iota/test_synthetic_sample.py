"""The synthetic network of the bundled sample is what its README says."""

from __future__ import annotations

import gzip
import shlex

import pytest

from permalake.cli.main import main
from permalake.config import load_settings
from permalake.local.demo import SAMPLE as DEMO
from permalake.paths import ROOT, SAMPLE
from permalake_simulate.iota.tangle_generator import NETWORK

FOLDER = SAMPLE / "synthetic"
KINDS = ("milestones", "blocks", "consumed_outputs", "utxo_changes")


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """What the command in the README writes."""
    folder = tmp_path_factory.mktemp("made")
    text = (FOLDER / "README.md").read_text()
    command = text.partition("```sh\n")[2].partition("\nfor ")[0].replace("\\\n", " ")
    program, *arguments = shlex.split(command)
    assert program == "permalake"
    arguments[arguments.index("--out") + 1] = str(folder / "out")
    with pytest.raises(SystemExit) as ended:
        main(arguments)
    assert not ended.value.code
    return folder / "out"


@pytest.mark.parametrize("kind", KINDS)
def test_its_files_are_those_that_the_simulator_makes(made, kind) -> None:
    written = b"".join(gzip.decompress(file.read_bytes()) for file in sorted(made.glob(f"*/{kind}*.gz")))
    assert gzip.decompress((FOLDER / f"{kind}.jsonl.gz").read_bytes()) == written


def test_its_coordinator_is_the_simulator_s_and_all_its_days_are_to_come(made) -> None:
    ours = load_settings(ROOT / "permalake.toml").networks["synthetic"]
    [(name, theirs)] = load_settings(made / NETWORK).networks.items()
    assert ours.network_name == name
    for key in ("coordinator_public_keys", "coordinator_threshold", "bech32_hrp", "protocol", "source"):
        assert getattr(ours, key) == getattr(theirs, key), key
    [(first, last)] = [(str(start), str(end)) for network, start, end in DEMO if network == "synthetic"]
    days = sorted(file.parent.name for file in made.glob("*/milestones.jsonl.gz"))
    assert (days[0], days[-1]) == (first, last) == ("2100-01-01", "2100-01-21")

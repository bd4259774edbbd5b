"""Every planted fault is caught by the play that is named for it, and the healthy code is not."""

from pathlib import Path

import pytest

from simulation.planted_faults import FAULTS, PlantedFault

SEEDS_MAX = 1_500
README = Path(__file__).parent / "README.md"
HEAD = (
    "| fault | what it would do to a user | caught by | after so many seeds |\n"
    "| --- | --- | --- | --- |\n"
)

each_fault = pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.name)


def plays_until_caught(fault: PlantedFault, patch: pytest.MonkeyPatch) -> int | None:
    """Play until something that must hold does not; give how many plays that took."""
    with patch.context() as planted:
        fault.plant(planted)
        for seed in range(SEEDS_MAX):
            try:
                fault.caught_by(seed)
            except AssertionError:  # any other error would be one of the fault itself
                return seed + 1
    return None


@each_fault
def test_a_planted_fault_is_caught(fault: PlantedFault, monkeypatch: pytest.MonkeyPatch) -> None:
    play_count = plays_until_caught(fault, monkeypatch)
    assert play_count is not None, f"{SEEDS_MAX} seeds, and nobody noticed"
    fault.caught_by(play_count - 1)  # the healthy code passes the very same seed


def row_of(fault: PlantedFault) -> str:
    """Give the cells of a fault that do not change with every change of the worlds."""
    return f"| {fault.name} | {fault.harm} | `{fault.caught_by.__name__}` | "


def test_the_readme_tells_of_every_fault_and_of_no_other(
    request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    """``pytest --rewrite`` writes the table, with the seeds that it takes now."""
    before, _, table = README.read_text().partition(HEAD)
    if request.config.getoption("--rewrite"):
        rows = [f"{row_of(one)}{plays_until_caught(one, monkeypatch)} |\n" for one in FAULTS]
        README.write_text(before + HEAD + "".join(rows))
        return
    rows = table.strip().splitlines()
    assert [row.rpartition(" | ")[0] + " | " for row in rows] == [row_of(one) for one in FAULTS]

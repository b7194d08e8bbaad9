"""What the SQL view, the API and the page of every address of a lake say that it holds."""

from __future__ import annotations

from permalake.config import Settings
from permalake.python_api import Lake


def by_sql(settings: Settings, network: str) -> dict[str, tuple[int, int, int]]:
    """Balance, opening and first milestone of every address, by the account statement."""
    rows = Lake(settings).query(
        "SELECT address, arg_max(balance_base, milestone_index) AS balance, "
        "any_value(opening_base) AS opening, any_value(since_milestone) AS since "
        f'FROM "{network}".account_statement GROUP BY address'
    )
    found = rows.arrow().to_pylist()
    return {row["address"]: (row["balance"], row["opening"], row["since"]) for row in found}


def by_api(get, network: str, address: str) -> tuple[int, int, int]:
    """The same by the API; ``get`` returns the JSON of a path."""
    if address.startswith("iota"):
        told = get(f"/{network}/api/v1/addresses/{address}")["data"]
        return told["balance"], told["spentFromBefore"], told["sinceMilestone"]
    told = get(f"/{network}/api/explorer/v2/balance/{address}")
    return int(told["ownedAmount"]), int(told["spentFromBefore"]), told["sinceMilestone"]


def by_page(get, network: str, address: str) -> tuple[int, int, int]:
    """The same by the page, whose history ends with its balance."""
    told = get(f"/{network}/explore/address/{address}")["found"]
    assert told["history"]["moves"][0]["balance"] == told["unspent"]
    return int(told["unspent"]), int(told["opening"]), told["since"]

"""Calls of iota-sdk against a node, in a process of its own: the library blocks the interpreter.

Takes the node's URL; reads ``[[method, parameters], …]`` from standard input and writes a list of answers,
``{"error": …}`` where the client failed. An object of parameters is one of query parameters.
"""

from __future__ import annotations

import json
import sys

from iota_sdk import Client, ClientError, NodeIndexerAPI
from iota_sdk.types.output_id import OutputId


def called(client, method, parameters):
    """The answer as plain values."""
    if isinstance(parameters, dict):
        parameters = [NodeIndexerAPI.QueryParameters(**parameters)]
    try:
        answer = getattr(client, method)(*parameters)
    except ClientError as error:
        return {"error": str(error)}
    if hasattr(answer, "items") and hasattr(answer, "ledgerIndex"):
        return {"ledgerIndex": answer.ledgerIndex, "items": [str(one) for one in answer.items]}
    # An output id is a dictionary to Python.
    return str(answer) if isinstance(answer, OutputId) else answer


if __name__ == "__main__":
    node = Client(nodes=[sys.argv[1]])
    sys.stdout.write(json.dumps([called(node, *call) for call in json.load(sys.stdin)], default=vars))

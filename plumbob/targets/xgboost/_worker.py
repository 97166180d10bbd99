"""What runs in a process of its own: xgboost's federated server, or one party's worker. It imports nothing of Plumbob.

The starting process writes one block of bytes to stdin (length, then .npz) and keeps stdin open: when it closes, for whatever
reason, this process ends. The answer, if any, goes to stdout; exit codes say what went wrong without a word about the data.
"""

from __future__ import annotations

import io
import json
import os
import sys
import threading
from typing import Any, BinaryIO

NO_PLUGIN, FAILED, LEFT_ALONE = 4, 5, 6


def main() -> None:
    answer = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # so that nothing else is written between
    size = int.from_bytes(sys.stdin.buffer.read(8), "big")
    block = sys.stdin.buffer.read(size)
    threading.Thread(target=_leave_with_the_parent, daemon=True).start()

    for unused in ("sklearn", "pandas"):  # xgboost does without them, and starts four times as fast
        sys.modules[unused] = None  # type: ignore[assignment]  # which is how Python spells "not there"
    import numpy as np
    import xgboost

    if not xgboost.build_info().get("USE_FEDERATED"):
        os._exit(NO_PLUGIN)
    arrays = dict(np.load(io.BytesIO(block)))
    task = json.loads(str(arrays.pop("task")))
    try:
        if task["role"] == "server":
            serve(task, answer)
        else:
            answer.write(work(task, arrays))
    except Exception as error:  # the message may name values, the kind does not
        sys.stderr.write(f"\n{type(error).__name__}\n")
        sys.stderr.flush()
        os._exit(FAILED)
    answer.close()
    os._exit(0)


def _leave_with_the_parent() -> None:
    os.read(0, 1)  # nothing comes but the end
    os._exit(LEFT_ALONE)


def in_memory(text: str) -> str:
    """A path to a text that is on no disk and ends with this process: xgboost takes keys as files only."""
    number = os.memfd_create("pem")
    os.write(number, text.encode())
    return f"/proc/self/fd/{number}"


def serve(task: dict[str, Any], answer: BinaryIO) -> None:
    """Listen on a port of the system's choice and tell it; the server has no end of its own."""
    from xgboost.federated import run_federated_server

    told = run_federated_server(
        n_workers=task["workers"],
        port=0,
        server_key_path=in_memory(task["key"]),
        server_cert_path=in_memory(task["certificate"]),
        client_cert_path=in_memory(task["certificate"]),
        blocking=False,
        timeout=task["timeout"],
    )
    assert told is not None
    answer.write(f"{told['dmlc_tracker_port']}\n".encode())
    answer.flush()
    threading.Event().wait()


def work(task: dict[str, Any], arrays: dict[str, Any]) -> bytes:
    """Train with the others on own columns; the model as this party has it afterwards."""
    import xgboost
    from xgboost.collective import CommunicatorContext
    from xgboost.core import DataSplitMode

    xgboost.set_config(verbosity=0)
    with CommunicatorContext(
        dmlc_communicator="federated",
        federated_server_address=task["server"],
        federated_world_size=task["workers"],
        federated_rank=task["rank"],
        federated_server_cert_path=in_memory(task["certificate"]),
        federated_client_key_path=in_memory(task["key"]),
        federated_client_cert_path=in_memory(task["certificate"]),
    ):
        table = xgboost.DMatrix(
            arrays["values"], label=arrays.get("label"), data_split_mode=DataSplitMode.COL, nthread=1
        )
        booster = xgboost.train(task["parameters"], table, num_boost_round=task["rounds"])
        model = bytes(booster.save_raw("json"))
        if task["predict"]:
            booster.predict(table)
    return model


if __name__ == "__main__":
    main()

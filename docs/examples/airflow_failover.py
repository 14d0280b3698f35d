"""An Airflow 3 DAG that fails over only once replication is proven complete.

`ReplicationComplete` is a sensor: it checks again while entries are still on their way. `CheckReplication` is an
operator: it checks once. Both run `status-tool run -i FILE --json` on the worker, which needs the tool, a JRE and the
slave's site files, and return the verdict's JSON document to XCom, without its list of problems. FILE has to be the one
of this failover: an old one is complete as well, up to its own cut (`cut_ms`).
"""

from __future__ import annotations

import json
import subprocess
from collections.abc import Sequence
from datetime import timedelta
from typing import Any

from airflow.sdk import DAG, BaseOperator, BaseSensorOperator, PokeReturnValue, task
from airflow.sdk.exceptions import AirflowException, AirflowFailException

COMPLETE, INCOMPLETE, ERROR, UNVERIFIABLE = 0, 1, 2, 3
"""Exit codes of `status-tool run -i`."""


def check(status_file: str, arguments: Sequence[str], command: str = "status-tool") -> dict[str, Any]:
    """Run a check; returns its JSON document. A usage or connection error fails the task, and may be retried."""
    done = subprocess.run(
        [command, "run", "-i", status_file, "--json", *arguments], capture_output=True, text=True, check=False
    )
    document: dict[str, Any] = json.loads(done.stdout or "{}")
    if done.returncode not in (COMPLETE, INCOMPLETE, UNVERIFIABLE) or "verdict" not in document:
        raise AirflowException(document.get("error") or done.stderr.strip() or f"exit code {done.returncode}")
    return document


def may_arrive(document: dict[str, Any]) -> bool:
    """Whether all that is missing may still arrive by itself: a gap, a difference or a doubt does not."""
    regions = (document["hbase"] or {}).get("regions", {})
    files = (document["hdfs"] or {}).get("files", {})
    bad = [regions.get(status, 0) for status in ("gap", "differs", "unverifiable")]
    bad += [files.get(status, 0) for status in ("mismatch", "missing", "incomparable", "unverifiable")]
    repairs = document["repairs"] or []
    return document["exit_code"] == INCOMPLETE and not any(bad) and not any(repair["stuck"] for repair in repairs)


def summary(document: dict[str, Any]) -> dict[str, Any]:
    """The document without its lists, small enough for XCom."""
    return {key: document[key] for key in ("verdict", "exit_code", "cut_ms", "hbase", "hdfs")}


class CheckReplication(BaseOperator):
    """Fails unless the verdict is *complete*; without retries, since a loss does not heal by itself."""

    template_fields = ("status_file", "arguments")

    def __init__(self, *, status_file: str, arguments: Sequence[str] = (), **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.status_file = status_file
        self.arguments = arguments

    def execute(self, context: Any) -> dict[str, Any]:
        """Check once."""
        document = check(self.status_file, self.arguments)
        if document["exit_code"] != COMPLETE:
            raise AirflowFailException(told(document))
        return summary(document)


class ReplicationComplete(BaseSensorOperator):
    """Succeeds once the verdict is *complete*; fails at once where waiting cannot help."""

    template_fields = ("status_file", "arguments")

    def __init__(self, *, status_file: str, arguments: Sequence[str] = (), **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.status_file = status_file
        self.arguments = arguments

    def poke(self, context: Any) -> PokeReturnValue:
        """Check once; what is only behind is checked again."""
        document = check(self.status_file, self.arguments)
        if document["exit_code"] == COMPLETE:
            return PokeReturnValue(is_done=True, xcom_value=summary(document))
        if may_arrive(document):
            return PokeReturnValue(is_done=False)
        raise AirflowFailException(told(document))


def told(document: dict[str, Any]) -> str:
    """The verdict and its worst problem, in one line."""
    worst = next(iter(document["problems"]), None)
    if worst is None:
        return str(document["verdict"])
    where = worst.get("table") or worst.get("path") or "the run"
    return f"{document['verdict']}: {worst['kind']} in {where}: {worst['detail']}"


with DAG("failover", schedule=None, catchup=False) as dag:
    proven = ReplicationComplete(
        task_id="replication_complete",
        status_file="/var/lib/status-tool/master.status",
        arguments=["--conf-dir", "/etc/hbase/conf"],
        poke_interval=30,
        timeout=timedelta(minutes=30).total_seconds(),
        mode="reschedule",
    )

    @task
    def start_application_on_slave() -> None:
        """Start the application on the slave."""

    proven >> start_application_on_slave()

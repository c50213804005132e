"""A result file: what was measured, when and where. One JSON object; docs/benchmarking.md lists its members."""
import datetime
import json

from . import machine, peers
from .statistic import rounded

FORMAT = 2


def begin(root):
    return {"format": FORMAT, "date": datetime.date.today().isoformat(), "commit": machine.commit(root), "machine": machine.machine()}


def write(whole, path):
    with open(path, "w", encoding="utf-8") as out:
        json.dump(rounded(whole), out, indent=1)
        out.write("\n")


def read(path):
    with open(path, encoding="utf-8") as file:
        whole = json.load(file)
    if whole.get("format") != FORMAT:
        raise SystemExit(f"{path}: no benchmark result of format {FORMAT}")
    return whole


def tools():
    """The versions of the peers that are installed."""
    asked = {each["version"][0]: each["version"] for each in peers.every().values() if each["version"]}
    said = {name: machine.said(*command) for name, command in asked.items()}
    return {name: version for name, version in said.items() if version}

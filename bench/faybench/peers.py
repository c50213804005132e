"""What peers say of themselves by their word `about`: how they get at a call, what they and their modes are called, and what prints their version."""
import functools
import os
import subprocess
from pathlib import Path

FOLDER = Path(__file__).resolve().parent.parent / "peers"
KINDS = ("fay", "in_process", "kernel", "stops")


def parse(peer, said):
    """Lines `kind KIND`, `tool NAME`, `mode LABEL NAME`, `home [LABEL] URL` and `version COMMAND...`."""
    about = {"kind": "in_process", "tool": peer, "modes": {}, "homes": {}, "version": []}
    for line in said.splitlines():
        word, _, rest = line.partition(" ")
        if word == "mode":
            label, _, name = rest.partition(" ")
            about["modes"][label] = name
        elif word == "home":
            label, _, url = rest.rpartition(" ")
            about["homes"][label] = url
        elif word == "version":
            about["version"] = rest.split()
        elif word == "tool" or (word == "kind" and rest in KINDS):
            about[word] = rest
        else:
            raise ValueError(f"{peer}: not understood: {line}")
    return about


def said(peer, word):
    """What a file in bench/peers prints for a word that is about no target."""
    nothing = {name: "" for name in ("PEER_TARGET", "PEER_FUNCTION", "PEER_WORK", "PEER_BIN", "PEER_PID", "PEER_CPU")}
    environment = dict(os.environ, PEER_CONTEXT=str(FOLDER.parent), **nothing)
    return subprocess.run([str(FOLDER / peer), word], env=environment, capture_output=True, text=True, check=True).stdout


@functools.cache
def every():
    """{peer: what it says}, of all in bench/peers"""
    return {peer.name: parse(peer.name, said(peer.name, "about")) for peer in sorted(FOLDER.iterdir()) if os.access(peer, os.X_OK)}


def about(peer):
    """Of a peer that is not there any more, or was elsewhere: what holds unless one says otherwise."""
    return every().get(peer) or parse(peer, "")


def kind(peer):
    return about(peer)["kind"]


def tool(peer):
    return about(peer)["tool"]


def home(peer, label=""):
    """Where a mode, or the tool, is described; None where nothing says it."""
    homes = about(peer)["homes"]
    return homes.get(label, homes.get(""))


def name(peer, label):
    """Of a mode; a star behind it: the program was compiled for it."""
    return about(peer)["modes"].get(label, tool(peer))

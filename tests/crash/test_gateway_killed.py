"""SIGKILL of the gateway, at any instant, leaves no command (rows K10 and K11)."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from codespace.runner.api import Containment
from programs.running import PROGRAMS, both_containments, living, new_token

KILLS = 40


@both_containments
@pytest.mark.timeout(120)
def test_k10_and_k11_no_command_survives_a_killed_gateway(tmp_path: Path, containment: Containment):
    token = new_token()
    done = subprocess.run(
        [
            sys.executable,
            str(PROGRAMS / "killed_gateways.py"),
            containment,
            str(KILLS),
            token,
            str(tmp_path),
        ],
        stdout=subprocess.PIPE,
        env={
            **os.environ,
            "PYTHONPATH": os.pathsep.join([str(PROGRAMS.parent), *filter(None, sys.path)]),
        },
        timeout=110,
        check=True,
    )
    report = json.loads(done.stdout)
    assert report["killed"] == KILLS
    assert report["ran"] > 0, "no kill hit a running command; nothing was proven"
    assert report["survived"] == 0
    assert report["left"] == 0, "a launcher stayed that the next gateway does not find"
    assert not living(token)

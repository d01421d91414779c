"""Starts proxies of LiteLLM, run by LiteLLM's own Python. Importing it takes ten seconds of processor time, so it is imported
once, and each proxy is a fork that runs LiteLLM's command line.

Reads a line of JSON for each proxy: its arguments, environment and log. Answers the process's id.
"""

import ctypes
import json
import os
import signal
import sys

import litellm.proxy.proxy_server  # noqa: F401
from litellm import run_server


def run(arguments, environment, log):
    ctypes.CDLL(None).prctl(1, signal.SIGTERM)  # PR_SET_PDEATHSIG
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    output = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    os.dup2(output, 1)
    os.dup2(output, 2)
    os.environ.update(environment)
    run_server(arguments)


signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # nobody waits for the forks
for line in sys.stdin:
    child = os.fork()
    if child == 0:
        run(**json.loads(line))
        sys.exit()
    print(child, flush=True)

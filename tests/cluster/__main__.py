"""python3 tests/cluster [--port N] [--kubeconfig FILE] - the test cluster, by
hand or for a test

It serves until it gets a signal, and then takes away what it made in the
engine.  Its first line of output is JSON: where everything is.
"""
import argparse
import asyncio
import os
import shutil
import signal
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[0] = os.path.dirname(HERE)
sys.path.append(os.path.join(os.path.dirname(HERE), "integration"))

from cluster.serving import serve  # noqa: E402


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--namespace", default="sbx")
    parser.add_argument("--kubeconfig", help="another place for a copy of "
                        "the one for the namespace's account")
    parser.add_argument("--directory", help="for its files; else a new one, "
                        "which goes at the end")
    options = parser.parse_args()
    host = os.environ.get("DOCKER_HOST", "unix:///run/docker.sock")
    directory = options.directory or tempfile.mkdtemp(prefix="cluster-")
    loop = asyncio.new_event_loop()
    task = loop.create_task(serve(host, directory, options))
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, task.cancel)
    try:
        loop.run_until_complete(task)
    except asyncio.CancelledError:
        pass
    finally:
        if not options.directory:
            shutil.rmtree(directory, ignore_errors=True)


main()

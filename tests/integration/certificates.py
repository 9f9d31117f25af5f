"""An authority of the test's own, and certificates of it, by openssl."""
import os
import subprocess


def openssl(*args, cwd=None):
    subprocess.run(["openssl", *args], check=True, cwd=cwd,
                   stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                   stderr=subprocess.STDOUT)


class Authority:
    def __init__(self, directory, name="test authority", days=30):
        self.dir = directory
        os.makedirs(directory, exist_ok=True)
        self.certificate = os.path.join(directory, "ca.pem")
        self.key = os.path.join(directory, "ca.key")
        openssl("req", "-x509", "-newkey", "ec", "-pkeyopt",
                "ec_paramgen_curve:P-256", "-nodes", "-days", str(days),
                "-subj", f"/CN={name}", "-keyout", self.key,
                "-out", self.certificate)

    def issue(self, name, algorithm="ec", days=30,
              alt="IP:127.0.0.1,DNS:localhost"):
        """Paths of a certificate for loopback, or a client, and its key; one
        of days=0 or less has expired."""
        path = os.path.join(self.dir, name)
        new = {"ec": ["ec", "-pkeyopt", "ec_paramgen_curve:P-256"],
               "rsa": ["rsa:2048"]}[algorithm]
        with open(path + ".ext", "w") as f:
            f.write(f"subjectAltName={alt}\n")
        openssl("req", "-newkey", *new, "-nodes", "-subj", f"/CN={name}",
                "-keyout", path + ".key", "-out", path + ".csr")
        openssl("x509", "-req", "-in", path + ".csr", "-CA",
                self.certificate, "-CAkey", self.key, "-CAcreateserial",
                "-days", str(days), "-extfile", path + ".ext",
                "-out", path + ".pem")
        os.chmod(path + ".key", 0o600)
        return path + ".pem", path + ".key"

"""An OpenID Connect issuer on loopback, for roles that are assumed with a web identity. Wants the program openssl."""

import base64
import hashlib
import http.server
import json
import pathlib
import ssl
import subprocess
import tempfile
import threading
import time

AUDIENCE = "sts.amazonaws.com"


def b64(data):
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


class Issuer:
    """Serves its discovery document and its key; the gateway wants the certificate in it (x5c)."""

    def __init__(self):
        self.dir = tempfile.TemporaryDirectory(prefix="hr-issuer-")
        self.key, certificate = f"{self.dir.name}/key.pem", f"{self.dir.name}/cert.pem"
        make = ("openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=localhost")
        subprocess.run([*make, "-keyout", self.key, "-out", certificate], check=True, stderr=subprocess.DEVNULL)
        self.der = ssl.PEM_cert_to_DER_cert(pathlib.Path(certificate).read_text())
        modulus = subprocess.run(
            ["openssl", "x509", "-in", certificate, "-noout", "-modulus"], check=True, capture_output=True, text=True
        ).stdout
        self.modulus = bytes.fromhex(modulus.split("=")[1].strip())
        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), self.handler())
        self.url = f"http://127.0.0.1:{self.server.server_port}/realm"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    @property
    def thumbprint(self):
        return hashlib.sha1(self.der).hexdigest().upper()

    def document(self, path):
        if "openid-configuration" in path:
            return {"issuer": self.url, "jwks_uri": self.url + "/certs"}
        x5c = [base64.b64encode(self.der).decode()]
        key = {"kid": "k1", "kty": "RSA", "alg": "RS256", "use": "sig", "n": b64(self.modulus), "e": "AQAB", "x5c": x5c}
        return {"keys": [key]}

    def handler(issuer):
        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self):
                body = json.dumps(issuer.document(self.path)).encode()
                self.send_response(200)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_):
                pass

        return Handler

    def token(self, life=600):
        """RS256, as a cluster gives them to its pods."""
        now = int(time.time())
        claims = {"iss": self.url, "sub": "system:serviceaccount:ns:sa", "iat": now, "nbf": now - 5, "exp": now + life}
        claims |= dict.fromkeys(("aud", "azp", "client_id"), AUDIENCE)
        head = {"alg": "RS256", "typ": "JWT", "kid": "k1"}
        signed = b64(json.dumps(head).encode()) + "." + b64(json.dumps(claims).encode())
        sign = ["openssl", "dgst", "-sha256", "-sign", self.key]
        signature = subprocess.run(sign, input=signed.encode(), check=True, capture_output=True).stdout
        return f"{signed}.{b64(signature)}"

    def stop(self):
        self.server.shutdown()
        self.server.server_close()
        self.dir.cleanup()

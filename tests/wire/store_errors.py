#!/usr/bin/env python3
"""What a user reads when something is wrong with a store: one line that says what was asked for, what came back, and what to do.

    store_errors.py PROGRAM          PROGRAM is headrace of the build

A table: what is wrong, a URL, its options, what the line must have. Every line is also looked at as a whole: short enough,
printable, without the secrets that went in. Prints TAP.
"""

import http.server
import json
import os
import pathlib
import ssl
import subprocess
import sys
import tempfile
import threading
from functools import partial

import refusing

HERE = pathlib.Path(__file__).resolve().parent
SECRET, AZURE_SECRET = (
    "secret/with+specials",
    "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8gISIjJCUmJygpKissLS4vMDEyMzQ1Njc4OTo7PD0+Pw==",
)
OTHER_SECRET = "QEFCQ0RFRkdISUpLTE1OT1BRUlNUVVZXWFlaW1xdXl9gYWJjZGVmZ2hpamtsbW5vcHFyc3R1dnd4eXp7fH1+fw=="
SECRETS = (SECRET, AZURE_SECRET, OTHER_SECRET, "pa55word", "t0ken", "AWS4-HMAC", "SharedKey", "Bearer ")
PAGE = b"<!DOCTYPE html><html><head><title>Sign in</title></head><body>Welcome</body></html>"


class Page(http.server.BaseHTTPRequestHandler):
    """A page of HTML for everything: 401 below /private, 404 below /absent, else with status 200."""

    def do_GET(self):
        status = 401 if "/private" in self.path else 404 if "/absent" in self.path else 200
        self.send_response(status)
        self.send_header("Content-Type", "text/html")
        self.send_header("Content-Length", str(len(PAGE)))
        self.end_headers()
        self.wfile.write(PAGE)

    def log_message(self, *_):
        pass


class Refusal(Page):
    """A proxy that lets nobody through."""

    def do_GET(self):
        self.send_response(407)
        self.send_header("Content-Length", "0")
        self.end_headers()

    do_CONNECT = do_GET


def serve(handler, context=None):
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
    server.daemon_threads = True
    if context:
        server.socket = context.wrap_socket(server.socket, server_side=True)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return server.server_port


def certificate(folder):
    """For another name than this machine's."""
    make = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=other.example"]
    key, path = f"{folder}/key.pem", f"{folder}/cert.pem"
    subprocess.run([*make, "-keyout", key, "-out", path], check=True, stderr=subprocess.DEVNULL)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(path, key)
    return context, path


class Mock:
    def __init__(self, script):
        self.process = subprocess.Popen(
            [sys.executable, HERE / script], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        self.port = int(self.process.stdout.readline())

    def stop(self):
        self.process.stdin.close()
        self.process.wait(10)


class Stores:
    """Each kind of store at some server: URL and options."""

    def __init__(self, s3, gs, az):
        self.ports = {"s3": s3.port, "gs": gs.port, "az": az.port}

    def options(self, kind, at=None, **more):
        at = at or f"http://127.0.0.1:{self.ports[kind]}" if kind != "https" else None
        if kind == "s3":
            return {"endpoint_url": at, "key": "KEY", "secret": SECRET, **more}
        if kind == "gs":
            return {"endpoint_url": at, "key": "KEY", "secret": SECRET, **more}
        if kind == "az":
            return {"account_name": "acct", "account_key": AZURE_SECRET, "endpoint": f"{at}/acct", **more}
        return more

    def at(self, kind, server, path="plain/a", **more):
        """One row for each kind of store, all at the same server."""
        if kind == "https":
            return f"{server}/{path}", more
        return f"{kind}://{path}", self.options(kind, server, **more)


KINDS = ("s3", "gs", "az", "https")


def malformed():
    """Refused without a request."""
    for url, *parts in (
        ("s3://", "s3://bucket/path"), ("s3:///x", "s3://bucket/path"), ("s3:/b/x", "two slashes", "s3://"),
        ("s3://b?versionId=1", "no query", "https://"), ("s3://arn:aws:s3:x/y", "ARNs"), ("gs://", "gs://bucket/path"),
        ("gs://B/x", "gs://B/x", "lower-case"), ("az://", "az://container/path"), ("az://c", "az://container/path"),
        ("abfss://con@/x", "no storage account", "abfss://container@account"), ("https://", "https://host"),
        ("https://host:99999/x", "no valid host"), ("http://[::1/x", "no valid host"), ("ftp://h/x", "s3://, gs:// and az://"),
    ):  # fmt: skip
        yield "malformed", url, {}, parts


def refused(stores, page):
    """Servers that answer, and do not give."""
    s3, gs, az = (partial(stores.options, kind) for kind in ("s3", "gs", "az"))
    yield "no bucket", "s3://gone/a", s3(), ("s3://gone/a/", "404 NoSuchBucket", "check its name")
    yield "no bucket", "gs://gone/a", gs(), ("gs://gone/a/", "404 NoSuchBucket", "no bucket of this name")
    yield "no container", "az://gone/a", az(), ("az://gone/a/", "404 ContainerNotFound", "no container of this name")
    yield "no archive", f"{page}/absent/a", {}, ("/absent/a", "no Zarr archive", "give the path")
    yield "wrong secret", "s3://plain/a", s3(secret="pa55word"), ("403 SignatureDoesNotMatch", "secret key")
    yield "wrong secret", "gs://plain/a", gs(secret="pa55word"), ("403 SignatureDoesNotMatch", "HMAC key")
    yield "wrong secret", "az://plain/a", az(account_key=OTHER_SECRET), ("403 AuthenticationFailed", "account key")
    yield "wrong secret", f"{page}/private/a", {}, ("/private/a/", "401", "Authorization")
    yield "unknown key", "s3://plain/a", s3(key="NOBODY"), ("403 InvalidAccessKeyId", "does not know the access key")
    token = {"key": None, "secret": None, "access_token": "t0ken"}
    yield "wrong token", "gs://plain/a", gs(**token), ("gs://plain/a/", "401", "token was not accepted")
    yield "no secret", "s3://plain/a", s3(secret=None), ("s3://plain/a", "key without secret")
    yield "denied", "s3://denied/a", s3(), ("s3://denied/a/", "403 AccessDenied", "s3:ListBucket")
    yield "denied", "s3://denied/a", s3(missing_403=True), ("s3://denied/a/", "403 AccessDenied", "s3:ListBucket")
    yield "denied", "gs://denied/a", gs(), ("gs://denied/a/", "403", "storage.objects")
    yield "denied", "az://noperm/a", az(), ("403 AuthorizationPermissionMismatch", "Storage Blob Data Reader")
    # Wrong clocks and regions are found out and corrected: what is left to say is that there is no archive.
    for url, options in (("s3://late/a", s3()), ("az://late/a", az()), ("s3://moved-301/a", s3())):
        yield "clock or region", url, options, (url, "no Zarr archive")
    yield "region", "s3://moved-loop/a", s3(), ("301 PermanentRedirect", "give its region or endpoint_url")


def unreachable(stores, page, tls, pem, proxy):
    """No answer of the store's."""
    for kind in KINDS:
        url, options = stores.at(kind, "https://no-such-host.invalid")
        yield "no such name", url, options, (url, "no-such-host.invalid", "name right")
        url, options = stores.at(kind, f"https://{refusing.HOST}")
        yield "nobody listens", url, options, (url, "127.0.0.1", "is a server running there")
        url, options = stores.at(kind, tls)
        yield "unknown certificate", url, options, (url, "certificate", "ca_file")
        url, options = stores.at(kind, tls, ca_file=pem)
        yield "certificate of another", url, options, (url, "certificate", "the name that the server is meant to have")
        url, options = stores.at(kind, page.replace("http:", "https:"))
        yield "no TLS there", url, options, (url, "does this port speak https")
        url, options = stores.at(kind, f"https://{refusing.HOST}", proxy=proxy.replace("//", "//user:pa55word@"))
        yield "proxy refuses", url, options, (url, "the proxy refuses", "407", "no_proxy")
        url, options = stores.at(kind, f"https://{refusing.HOST}", proxy=f"http://{refusing.HOST}")
        yield "no proxy there", url, options, (url, "through the proxy")
        url, options = stores.at(kind, f"https://{refusing.HOST}", proxy="http://no-such-proxy.invalid:3128")
        yield "no such proxy", url, options, (url, "no-such-proxy.invalid", "the proxy's name right")
        url, options = stores.at(kind, page)
        yield "HTML with status 200", url, options, (url, "zarr.json: a page of HTML", "sign-in page")
        if kind != "https":
            url, options = stores.at(kind, page, "absent/a")
            yield "HTML with status 404", url, options, (url, "status 404", "check")


def nasty(stores, page):
    """Keys of all bytes: shown as far as they can be printed, in one line."""
    for key, shown in (
        ("a b/%41", "a b/%41"), ("é/☃", "é/☃"), ("q?u=e#r", "q?u=e#r"), ("a//b", "a//b"), ("tab\there", "tab?here"),
        ("new\nline", "new?line"), ("\x01\x7f\x1b[31m", "??"), ("\udcff\udc80", "?"),
    ):  # fmt: skip
        yield "nasty key", f"s3://denied/{key}", stores.options("s3"), (f"s3://denied/{shown}", "403 AccessDenied")
        yield "nasty key", f"gs://denied/{key}", stores.options("gs"), (f"gs://denied/{shown}", "403")
        yield "nasty key", f"az://noperm/{key}", stores.options("az"), (f"az://noperm/{shown}", "403 Authorization")
        if "?" not in key:
            yield "nasty key", f"{page}/private/{key}", {}, (f"{page}/private/", "401")


def environment():
    clean = ("AWS_", "AZURE_", "GOOGLE_", "IDENTITY_", "MSI_")
    env = {k: v for k, v in os.environ.items() if not k.startswith(clean) and not k.lower().endswith("_proxy")}
    env |= {"HOME": "/nonexistent", "LC_ALL": "C.UTF-8", "AWS_EC2_METADATA_DISABLED": "true", "NO_GCE_CHECK": "true"}
    return env


def fault_of(run, parts):
    """What is wrong with a run that should have ended in one good line; "" if nothing."""
    line = run.stderr.decode("utf-8", "replace").removesuffix("\n")
    absent = [p for p in parts if p not in line]
    shown = [s for s in SECRETS if s in line]
    bad = [f"status {run.returncode}"] if run.returncode != 1 or run.stdout else []
    bad += [f"without {absent}"] if absent else []
    bad += [f"shows {shown}"] if shown else []
    lines = line.split("\n")  # warnings of the log may stand before the error
    whole = all(one.isprintable() and one.startswith("headrace: ") for one in lines)
    bad += ["not printable"] if not whole or "\ufffd" in line else []
    bad += ["too long"] if len(line) > 560 else []
    return f"{', '.join(bad)}: {line!r}" if bad else ""


def main():
    program, env = sys.argv[1], environment()
    mocks = [Mock(f"{name}.py") for name in ("s3_mock", "gcs_mock", "azure_server")]
    stores, page, n, failed = Stores(*mocks), f"http://127.0.0.1:{serve(Page)}", 0, 0
    with tempfile.TemporaryDirectory() as folder:
        context, pem = certificate(folder)
        tls, proxy = f"https://127.0.0.1:{serve(Page, context)}", f"http://127.0.0.1:{serve(Refusal)}"
        rows = [*malformed(), *refused(stores, page), *unreachable(stores, page, tls, pem, proxy), *nasty(stores, page)]
        for what, url, options, parts in rows:
            options = {k: v for k, v in options.items() if v is not None}
            command = [program, "inspect", "--options", json.dumps(options), url.encode("utf-8", "surrogateescape")]
            run = subprocess.run(command, env=env, capture_output=True, timeout=120, check=False)
            fault, n = fault_of(run, parts), n + 1
            failed += bool(fault)
            if fault:
                print(f"# {fault}")
            print(f"{'not ok' if fault else 'ok'} {n} - {what}: {ascii(url)[1:-1].replace('#', '%23')}", flush=True)
    for mock in mocks:
        mock.stop()
    print(f"1..{n}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())

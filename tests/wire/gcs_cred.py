#!/usr/bin/env python3
"""Who wins in the chain of Google credentials, what is asked of whom, what errors say; the same asked of google-auth.

    gcs_cred.py PROGRAM          PROGRAM is gcs_show of the build

Each case is an environment with files, and what must come of it against the servers of gcs_mock.py: the account whose
token it is, or an error with certain words. google-auth, where it is installed, must come to the same account, or refuse
as well, unless the case says why not. Prints TAP.
"""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
import gcs_mock
import refusing

HOME = Path(tempfile.mkdtemp(prefix="headrace-gcs-"))
PREFIXES = ("GOOGLE_", "GCE_", "GCLOUD_", "CLOUDSDK_", "STORAGE_", "NO_GCE")
BASE = {k: v for k, v in os.environ.items() if not k.startswith(PREFIXES) and not k.lower().endswith("_proxy")}
GOOGLE_AUTH = bool(importlib.util.find_spec("google.auth")) if importlib.util.find_spec("google") else False
server = gcs_mock.serve()
HOST = f"127.0.0.1:{server.server_port}"
URL = f"http://{HOST}"
SECRETS = (
    "PRIVATE KEY",
    gcs_mock.key.pem[40:80],
    gcs_mock.USER["client_secret"],
    gcs_mock.USER["refresh_token"],
    "ya29.",
    "HIDDEN",
)
OTHER = """
import google.auth, google.auth.transport.requests as requests, json
try:
    c, _ = google.auth.default(scopes=["https://www.googleapis.com/auth/devstorage.read_only"])
    if hasattr(c, "with_always_use_jwt_access") and json.load(open(FILE))["token_uri"].startswith("https"):
        c = c.with_always_use_jwt_access(True)
    c.refresh(requests.Request())
    print(c.token)
except Exception as e:
    print("error:", type(e).__name__, str(e).replace(chr(10), " "))
"""

nth = 0
failed = 0


def report(name, faults):
    global nth, failed
    nth += 1
    failed += bool(faults)
    for fault in faults:
        print("# " + fault.replace("\n", "\n# "))
    print(f"{'not ok' if faults else 'ok'} {nth} - {name}", flush=True)


def write(name, content):
    path = HOME / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(content if isinstance(content, str) else json.dumps(content))
    return str(path)


def run(env, *arguments):
    full = {**BASE, "HOME": str(HOME / "nobody"), "GCE_METADATA_HOST": refusing.HOST, **env}
    done = subprocess.run([sys.argv[1], *arguments], env=full, capture_output=True, text=True, timeout=60, check=False)
    return done.stdout + (f"exit status {done.returncode}\n" if done.returncode else ""), full


def account_of(token):
    """Whose token it is."""
    if token in gcs_mock.issued:
        return gcs_mock.issued[token][0]
    try:
        gcs_mock.read_jwt(token, None)
    except (ValueError, KeyError) as e:
        return f"no token that is known ({e}): {token[:30]}"
    return "self-signed"


def ask_google_auth(env, want, errors):
    file = env.get("GOOGLE_APPLICATION_CREDENTIALS", "/dev/null")
    done = subprocess.run(
        [sys.executable, "-c", OTHER.replace("FILE", repr(file))], env={**env, "GCE_METADATA_IP": env["GCE_METADATA_HOST"].partition("/")[0]},
        capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    got = done.stdout.strip()
    if errors:
        return [] if got.startswith("error:") else [f"google-auth finds {account_of(got)}"]
    return [] if account_of(got) == want else [f"google-auth: {got or done.stderr}"]


def case(name, env, want="", *, errors=(), arguments=(), differs=""):
    out, full = run(env, *arguments)
    faults = []
    if errors:
        faults = [f"not in {out.strip()!r}: {e}" for e in errors if e not in out]
        faults += ["no error"] if "error: " not in out else []
        faults += [f"a secret in {out!r}" for s in SECRETS if s in out]
    elif account_of(out.split("\n")[0]) != want:
        faults = [f"got {account_of(out.partition(chr(10))[0])}, not {want}: {out}"]
    if "exit status" in out:
        faults.append(out)
    if GOOGLE_AUTH and not differs and not arguments:
        faults += ask_google_auth(full, want, errors)
    report(name, faults)


def adc(path):
    return {"GOOGLE_APPLICATION_CREDENTIALS": path}


own = write("own.json", gcs_mock.service_account("https://oauth2.googleapis.com/token"))
bare = write("bare.json", gcs_mock.service_account(None))
asked = write("asked.json", gcs_mock.service_account(f"{URL}/token"))
user = write("user.json", gcs_mock.USER | {"token_uri": f"{URL}/token"})
gcloud = write("gcloud/application_default_credentials.json", gcs_mock.USER | {"token_uri": f"{URL}/token"})
write("me/.config/gcloud/application_default_credentials.json", gcs_mock.USER | {"token_uri": f"{URL}/token"})
MACHINE = {"GCE_METADATA_HOST": HOST}

# ---- who is found --------------------------------------------------------------------------------------------------
case("a service account signs for itself", adc(own), "self-signed")
case("without token_uri, too", adc(bare), "self-signed", differs="google-auth wants a token_uri")
case("another token endpoint is asked", adc(asked), "exchanged")
case("a user's refresh token is exchanged", adc(user), "user", differs="google-auth has Google's endpoint built in")
case("gcloud's file in CLOUDSDK_CONFIG", {"CLOUDSDK_CONFIG": str(HOME / "gcloud")}, "user", differs="likewise")
case("gcloud's file at home", {"HOME": str(HOME / "me")}, "user", differs="likewise")
case("the metadata server", MACHINE, "machine")
case("the environment goes before the machine", MACHINE | adc(own), "self-signed")
case("gcloud goes before the machine", MACHINE | {"HOME": str(HOME / "me")}, "user", differs="likewise")
case(
    "a key in the environment",
    {"GOOGLE_SERVICE_ACCOUNT_KEY": Path(own).read_text()} | MACHINE,
    "self-signed",
    differs="object_store's",
)
case(
    "a file in object_store's variable",
    {"GOOGLE_SERVICE_ACCOUNT": own} | MACHINE,
    "self-signed",
    differs="object_store's",
)
case("a file that is given goes before all", MACHINE | adc("/no/such"), "user", arguments=(user,))
case("the machine alone, where that is asked for", MACHINE | adc(own), "machine", arguments=("", "metadata"))
case("a file below the home directory", {"HOME": str(HOME)}, "exchanged", arguments=("~/asked.json",))

# ---- what fails ----------------------------------------------------------------------------------------------------
NOTHING = (
    "no credentials; looked at: environment",
    "GOOGLE_APPLICATION_CREDENTIALS is not set",
    "gcloud",
    "metadata server",
)
case("nothing at all", {}, errors=(*NOTHING, f"{refusing.HOST}: no answer"))
case("NO_GCE_CHECK", MACHINE | {"NO_GCE_CHECK": "true"}, errors=(*NOTHING, "NO_GCE_CHECK is set"))
case(
    "a machine without an account",
    {"GCE_METADATA_HOST": f"{HOST}/noaccount"},
    errors=("no service account is attached",),
)
case(
    "a file that is not there",
    adc("/no/such.json") | MACHINE,
    errors=("credentials from environment: /no/such.json: No such file",),
)
EXTERNAL = {"type": "external_account", "audience": "//iam", "token_url": "HIDDEN"}
case(
    "external_account is named",
    adc(write("x.json", EXTERNAL)),
    errors=('x.json: credentials of type "external_account" are not supported',),
)
case("not JSON", adc(write("t.json", "HIDDEN {")), errors=("t.json: this is not JSON",))
case("JSON of something else", adc(write("o.json", {"a": "HIDDEN"})), errors=('it has no "type"',))
case(
    "no private key",
    adc(write("k.json", {"type": "service_account", "client_email": "e"})),
    errors=('"private_key" is missing',),
)
BAD = gcs_mock.service_account("https://oauth2.googleapis.com/token") | {
    "private_key": "-----BEGIN PRIVATE KEY-----\nHIDDEN"
}
case("a private key that is none", adc(write("p.json", BAD)), errors=("p.json: ",))
case(
    "no refresh token",
    adc(write("r.json", {"type": "authorized_user", "client_id": "c", "client_secret": "HIDDEN"})),
    errors=('"refresh_token" is missing',),
)
DENIED = gcs_mock.USER | {"token_uri": f"{URL}/deny/token"}
case(
    "a refresh token that was revoked",
    adc(write("d.json", DENIED)),
    errors=("invalid_grant: Token has been expired", "gcloud auth application-default login"),
    differs="its endpoint",
)
WRONG = gcs_mock.USER | {"token_uri": f"{URL}/token", "client_id": "other"}
case("another client", adc(write("w.json", WRONG)), errors=("invalid_client: Unauthorized",), differs="its endpoint")
case(
    "a page instead of a token",
    adc(write("h.json", gcs_mock.service_account(f"{URL}/html/token"))),
    errors=("/html/token: the answer is not JSON",),
)
PLAIN = gcs_mock.service_account("http://far.example/token")
case(
    "a key is not sent in the clear",
    adc(write("u.json", PLAIN)),
    errors=("token_uri must begin with https://",),
    differs="google-auth would",
)

# ---- what is renewed -----------------------------------------------------------------------------------------------
out, _ = run({"GCE_METADATA_HOST": f"{HOST}/life1"}, "", "", "2")
tokens = out.split("\n")[::2]
report("a token that ends is fetched anew", [out] if len(set(tokens[:3])) != 3 or "error" in out else [])
out, _ = run({"GCE_METADATA_HOST": f"{HOST}/life1/sick"}, "", "", "1")
report("a machine that cannot renew does not become nobody", [] if "error: " in out and "503" in out else [out])

print(f"1..{nth}")
sys.exit(bool(failed))

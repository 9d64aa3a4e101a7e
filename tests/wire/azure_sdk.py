#!/usr/bin/env python3
"""The mock of Azure held against the official SDK, and the store against both.

    azure_sdk.py PROGRAM         PROGRAM is azure_read of the build

What the SDK signs, the mock must accept, and refuse once a byte is changed; with SAS that the SDK has made, the store must
read what the SDK has written, under names with every awkward byte. Prints TAP; skipped where azure-storage-blob is not
installed.
"""

from __future__ import annotations

import datetime
import ipaddress
import json
import os
import ssl
import subprocess
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
import azure_server as mock

try:
    from azure.core.credentials import AccessToken
    from azure.core.exceptions import AzureError, ClientAuthenticationError, HttpResponseError, ResourceNotFoundError
    from azure.storage import blob as sdk
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec
except ImportError:
    print("1..0 # SKIP azure-storage-blob is not installed")
    sys.exit(0)

PROGRAM = sys.argv[1]
for name in list(os.environ):
    if name.startswith(("AZURE_", "IDENTITY_", "MSI_")) or name.lower().endswith("_proxy"):
        del os.environ[name]
server = mock.serve()
URL = f"http://127.0.0.1:{server.server_port}/acct"
QUIET = {"retry_total": 0, "max_single_get_size": 100000, "max_chunk_get_size": 100000}
NAMES = [
    "plain", "a/b/c/0.0.0", "with space", "plus+plus", "percent%41literal", "eq=uals", "lat:0/c/0/1", "star*paren()!'",
    "tilde~dash-under_", "comma,semi;colon:at@dollar$amp&", "hash#quest?mark", "brackets[x]{y}", "pipe|caret^back`tick",
    'quote"lt<gt>', "uml-ü-ß-日本語-🌍", "a//b", "tab\ttab", "nfd-é", "a b+c%20d=e/f",
]  # fmt: skip
done = failed = 0


def test(f):
    global done, failed
    done += 1
    try:
        f()
        print(f"ok {done} - {f.__name__}")
    except Exception as e:
        failed += 1
        print(f"not ok {done} - {f.__name__}\n# {type(e).__name__}: {str(e).splitlines()[0] if str(e) else ''}")
        import traceback

        for line in traceback.format_exc().splitlines()[-8:]:
            print(f"# {line}")


def container(name, credential=mock.KEY, url=URL):
    return sdk.ContainerClient(url, name, credential=credential, **QUIET)


def raises(f, *kinds):
    try:
        f()
    except kinds:
        return
    raise AssertionError("no error")


def soon(minutes=60):
    return datetime.datetime.now(datetime.UTC) + datetime.timedelta(minutes=minutes)


def ask(where, options, *commands):
    """What the store answers to each command of store_ask.c."""
    options = {"account_name": "acct", "endpoint": URL, **options}
    command = [PROGRAM, where, json.dumps(options)]
    lines = "".join(f"{c}\n" for c in commands)
    out = subprocess.run(command, input=lines, capture_output=True, text=True, check=True).stdout.splitlines()
    assert len(out) == len(commands), out
    return [line.split(" ") for line in out]


def read(where, options, *keys):
    """Each key's bytes, or what is said instead; of one that begins with NUL the last four."""
    commands = [f"read {k.lstrip(chr(0)).encode().hex()} {-4 if k[0] == chr(0) else 0} 0" for k in keys]
    return [bytes.fromhex(a[2]) if a[0] == "bytes" else " ".join(a) for a in ask(where, options, *commands)]


@test
def what_the_sdk_signs_is_accepted():
    c = container("sdk-key")
    c.create_container()
    for i, name in enumerate(NAMES):
        c.upload_blob("x y/" + name, f"{i}: {name}".encode(), overwrite=True)
    c.upload_blob("big", mock.BIG, overwrite=True)
    assert c.download_blob("big").readall() == mock.BIG
    assert c.download_blob("big", offset=1000, length=150000).readall() == mock.BIG[1000:151000]
    assert sorted(b.name for b in c.list_blobs("x y/")) == sorted("x y/" + n for n in NAMES)
    raises(lambda: c.download_blob("none"), ResourceNotFoundError)


@test
def in_small_pages_too():
    c = container("sdk-key")
    pages = list(c.list_blobs("x y/", results_per_page=4).by_page())
    assert len(pages) == 5
    names = {b.name for b in c.walk_blobs("x y/")}
    assert "x y/a/" in names and "x y/plain" in names


@test
def another_key_is_refused():
    raises(lambda: container("sdk-key", mock.OTHER_KEY).download_blob("big"), ClientAuthenticationError)
    raises(lambda: container("sdk-key", None).download_blob("big"), HttpResponseError)


@test
def sas_of_the_sdk_are_accepted_and_no_others():
    common = {"account_name": "acct", "account_key": mock.KEY, "expiry": soon()}
    sas = sdk.generate_container_sas(container_name="sdk-key", permission="rl", **common)
    assert container("sdk-key", sas).download_blob("x y/plain").readall() == b"0: plain"
    assert len(list(container("sdk-key", sas).list_blobs("x y/"))) == len(NAMES)
    raises(lambda: container("plain", sas).download_blob("hello"), ClientAuthenticationError)
    raises(lambda: container("sdk-key", sas.replace("sp=rl", "sp=rwl")).download_blob("big"), ClientAuthenticationError)
    old = sdk.generate_container_sas(container_name="sdk-key", permission="rl", **common | {"expiry": soon(-5)})
    raises(lambda: container("sdk-key", old).download_blob("big"), ClientAuthenticationError)
    one = sdk.generate_blob_sas(container_name="sdk-key", blob_name="x y/eq=uals", permission="r", **common)
    assert container("sdk-key", one).download_blob("x y/eq=uals").readall() == b"5: eq=uals"
    raises(lambda: container("sdk-key", one).download_blob("big"), ClientAuthenticationError)
    raises(lambda: list(container("sdk-key", one).list_blobs()), AzureError)
    kinds = sdk.ResourceTypes(object=True)
    account = sdk.generate_account_sas(resource_types=kinds, permission="r", **common)
    assert container("sdk-key", account).download_blob("big").readall() == mock.BIG
    raises(lambda: list(container("sdk-key", account).list_blobs()), AzureError)


class Credential:
    def __init__(self, token):
        self.token = token

    def get_token(self, *_, **__):
        return AccessToken(self.token, 2**40)


def certificate():
    """Of this machine, made now: the path of a file with its key."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "test")])
    names = x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))])
    c = x509.CertificateBuilder().subject_name(name).issuer_name(name).public_key(key.public_key())
    c = c.serial_number(1).not_valid_before(soon(-60)).not_valid_after(soon(60)).add_extension(names, critical=False)
    pem = c.sign(key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM)
    form = (serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    path = Path(tempfile.mkdtemp(prefix="headrace-azure-")) / "both.pem"
    path.write_bytes(pem + key.private_bytes(*form))
    return str(path)


@test
def tokens_are_checked():
    pem = certificate()
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(pem)
    url = f"https://127.0.0.1:{mock.serve(context).server_port}/acct"

    def get(token):
        c = sdk.ContainerClient(url, "plain", credential=Credential(token), connection_verify=pem, **QUIET)
        return c.download_blob("hello").readall()

    assert get(mock.make_token("me")) == b"hello from plain"
    assert get(mock.make_token("me", aud=mock.RESOURCE + "/")) == b"hello from plain"
    raises(lambda: get(mock.make_token("me", life=-1)), ClientAuthenticationError)
    raises(lambda: get(mock.make_token("me", aud="https://management.azure.com")), ClientAuthenticationError)
    raises(lambda: get(mock.make_token("me", iss="https://sts.windows.net/other/")), ClientAuthenticationError)
    raises(lambda: get(mock.make_token("me", signer=b"somebody else")), ClientAuthenticationError)
    options = {"endpoint": url, "ca_file": pem, "token": mock.make_token("me")}
    assert read("az://plain", options, "hello", "\0hello") == [b"hello from plain", b"lain"]


@test
def the_store_reads_what_the_sdk_wrote():
    want = [f"{i}: {n}".encode() for i, n in enumerate(NAMES)]
    sas = sdk.generate_container_sas("acct", "sdk-key", account_key=mock.KEY, permission="rl", expiry=soon())
    for options in ({"account_key": mock.KEY}, {"sas_token": sas}, {"token": mock.make_token("me")}):
        assert read("az://sdk-key/x y", options, *NAMES) == want
        assert read("az://sdk-key/x y", options, *("\0" + n for n in NAMES)) == [w[-4:] for w in want]
        assert read("az://sdk-key", options, "big", "none") == [mock.BIG, "missing"]


@test
def and_lists_what_the_sdk_lists():
    for prefix in ("", "x y/"):
        walked = sorted(b.name[len(prefix) :] for b in container("sdk-key").walk_blobs(prefix))
        (answer,) = ask("az://sdk-key/" + prefix, {"account_key": mock.KEY}, "list ")
        assert sorted(bytes.fromhex(n).decode() for n in answer[1:]) == walked


@test
def account_sas_and_connection_strings_of_the_sdk_open_a_store():
    kinds = sdk.ResourceTypes(object=True, container=True)
    sas = sdk.generate_account_sas("acct", mock.KEY, kinds, "rl", soon(), services=sdk.Services(blob=True))
    text = f"BlobEndpoint={URL};SharedAccessSignature={sas}"
    assert sdk.ContainerClient.from_connection_string(text, "sdk-key").download_blob("big").readall() == mock.BIG
    options = {"connection_string": text, "endpoint": None}
    assert read("az://sdk-key", options, "big")[0] == mock.BIG
    text = f"DefaultEndpointsProtocol=http;AccountName=acct;AccountKey={mock.KEY};BlobEndpoint={URL}"
    options = {"connection_string": text, "endpoint": None, "account_name": None}
    assert read("az://sdk-key", options, "big")[0] == mock.BIG


print(f"1..{done}")
sys.exit(failed != 0)

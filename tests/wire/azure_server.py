#!/usr/bin/env python3
"""An Azure Blob service that checks who asks, and answers as real ones do at their worst; and the services that give
tokens. Loopback, standard library only. Prints its port and serves until standard input closes.

Requests are http://127.0.0.1:PORT/ACCOUNT/CONTAINER/BLOB, as those to an emulator. What is checked follows the REST
reference (Shared Key; account and service SAS from 2020-12-06 on; bearer tokens), azure_sdk.py holds it against the official
SDK. The account is "acct", with KEY; "other" has OTHER_KEY. What is PUT is kept; besides, each container has

    hello…  "hello from CONTAINER"    big  BIG, 300000 bytes    empty  nothing    echo  the blob's name

and its name says how it behaves:

    plain, public    honest; public is read by anybody, and refuses who is not anonymous with 403
    shut             404 ResourceNotFound to the anonymous, as a private container does
    closed           409 PublicAccessNotPermitted to the anonymous
    late             its clock is three hours ahead        wrong-date   honest, but its Date is garbage
    gone             404 ContainerNotFound                 noperm       403 AuthorizationPermissionMismatch
    firewall         403 AuthorizationFailure              nokeys       403 KeyBasedAuthenticationNotPermitted
    bare403          403 without code or body              html         404 with a page of HTML
    empty404         404 without code or body (proxy404: nor a sign of Azure)              cut404       404 whose XML is cut
    archived         409 BlobArchived                      nohttp       400 AccountRequiresHttps
    busy             503 ServerBusy twice, then honest     timed-out    500 OperationTimedOut twice
    expiring         401 InvalidAuthenticationInfo to the first token of each kind
    changing         another ETag with every answer        short        every first body of a blob is cut
    list-cut         a listing whose XML is cut            list-error   <Error> with status 200
    list-endless     the same marker for ever              list-html    a page of HTML with status 200
    list-round       three of them in turn for ever
    list-names       names that XML cannot hold, two pages

/_count/CONTAINER, /_tokens: how many requests, how many tokens there have been. /login/TENANT/oauth2/v2.0/token,
/metadata/identity/oauth2/token, /app/token, /ml/token: tokens; the identity is in the client's name. /_silence/…: no answer.
"""

import base64
import datetime
import email.utils
import hashlib
import hmac
import http.server
import json
import re
import sys
import threading
import time
import urllib.parse
from xml.sax.saxutils import escape

KEY = base64.b64encode(bytes(range(64))).decode()
OTHER_KEY = base64.b64encode(bytes(range(64, 128))).decode()
KEYS = {"acct": KEY, "other": OTHER_KEY, "devstoreaccount1": KEY}
BIG = bytes((i % 251) ^ (i // 251 % 241) for i in range(300000))
SECRET, ASSERTION, HEADER = "s3cret~Q+/=", "eyJ.cluster.token", "app header"
TENANT = "72f988bf-86f1-41af-91ab-2d7cd011db47"
RESOURCE, ISSUER, SIGNER = "https://storage.azure.com", f"https://sts.windows.net/{TENANT}/", b"only the mock knows"

lock = threading.Lock()
counts: dict[str, int] = {}
blobs: dict[tuple[str, str], bytes] = {}
blocks: dict[tuple[str, str, str], bytes] = {}
refused: set[str] = set()


# ---- tokens --------------------------------------------------------------------------------------------------------


def b64url(data):
    return base64.urlsafe_b64encode(data).rstrip(b"=")


def make_token(who, life=3600, aud=RESOURCE, iss=ISSUER, signer=SIGNER):
    claims = {"aud": aud, "iss": iss, "exp": time.time() + life, "sub": who, "nonce": time.time_ns()}
    text = b64url(b'{"alg":"HS256","typ":"JWT"}') + b"." + b64url(json.dumps(claims).encode())
    return (text + b"." + b64url(hmac.new(signer, text, hashlib.sha256).digest())).decode()


def check_token(token):
    """The claims; raises Refused."""
    try:
        text, _, signature = token.rpartition(".")
        claims = json.loads(base64.urlsafe_b64decode(text.split(".")[1] + "=="))
    except (ValueError, IndexError):
        raise Refused(401, "InvalidAuthenticationInfo") from None
    good = hmac.new(SIGNER, text.encode(), hashlib.sha256).digest()
    if b64url(good).decode() != signature or claims["iss"] != ISSUER or claims["exp"] < time.time():
        raise Refused(401, "InvalidAuthenticationInfo")
    if claims["aud"].rstrip("/") != RESOURCE:
        raise Refused(401, "InvalidAuthenticationInfo")
    return claims


# ---- signatures ----------------------------------------------------------------------------------------------------


def sign(key, text):
    return base64.b64encode(hmac.new(base64.b64decode(key), text.encode(), hashlib.sha256).digest()).decode()


STANDARD = [
    "Content-Encoding",
    "Content-Language",
    "Content-Length",
    "Content-MD5",
    "Content-Type",
    "Date",
    "If-Modified-Since",
    "If-Match",
    "If-None-Match",
    "If-Unmodified-Since",
    "Range",
]


def shared_key_text(method, account, target, headers):
    """The string to sign of "Authorize with Shared Key", for version 2015-02-21 and later."""
    path, _, query = target.partition("?")
    lines = [method]
    for name in STANDARD:
        value = headers.get(name) or ""
        empty = (name == "Content-Length" and value == "0") or (name == "Date" and "x-ms-date" in headers)
        lines.append("" if empty else value)
    own = {}
    for name, value in headers.items():
        if name.lower().startswith("x-ms-"):
            own[name.lower()] = " ".join(value.split())
    lines += [f"{name}:{own[name]}" for name in sorted(own)]
    parameters: dict[str, list[str]] = {}
    for name, value in urllib.parse.parse_qsl(query, keep_blank_values=True):
        parameters.setdefault(name.lower(), []).append(value)
    lines.append(f"/{account}{path}")
    lines += [f"{name}:{','.join(sorted(parameters[name]))}" for name in sorted(parameters)]
    return "\n".join(lines)


def service_sas_text(account, container, blob, q):
    name = f"/blob/{account}/{container}" + (f"/{blob}" if q["sr"] == "b" else "")
    fields = [q.get("sp", ""), q.get("st", ""), q.get("se", ""), name, q.get("si", ""), q.get("sip", "")]
    fields += [q.get(n, "") for n in ("spr", "sv", "sr", "snapshot", "ses", "rscc", "rscd", "rsce", "rscl", "rsct")]
    return "\n".join(fields)


def account_sas_text(account, q):
    return "\n".join([account, *(q.get(n, "") for n in ("sp", "ss", "srt", "st", "se", "sip", "spr", "sv", "ses")), ""])


def sas_time(text):
    form = {10: "%Y-%m-%d", 17: "%Y-%m-%dT%H:%MZ", 20: "%Y-%m-%dT%H:%M:%SZ"}[len(text)]
    return datetime.datetime.strptime(text, form).replace(tzinfo=datetime.UTC).timestamp()


def make_sas(container, minutes=60, sp="rl", account="acct", key=KEY, sr="c", blob="", **more):
    """A service SAS; more are further parts."""
    end = datetime.datetime.now(datetime.UTC) + datetime.timedelta(minutes=minutes)
    q = {"sv": "2023-11-03", "sr": sr, "sp": sp, "se": end.strftime("%Y-%m-%dT%H:%M:%SZ"), **more}
    q["sig"] = sign(key, service_sas_text(account, container, blob, q))
    return urllib.parse.urlencode(q)


class Refused(Exception):
    def __init__(self, status, code, detail=""):
        super().__init__(code)
        self.status, self.code, self.detail = status, code, detail


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    container = blob = account = ""

    def log_message(self, *_):
        pass

    def now(self):
        return time.time() + (3 * 3600 if self.container == "late" else 0)

    def reply(self, status, body=b"", fields=(), cut=False):
        body = body.encode() if isinstance(body, str) else body
        date = "yesterday" if self.container == "wrong-date" else email.utils.formatdate(self.now(), usegmt=True)
        self.send_response_only(status)
        for name, value in {"Date": date, "Content-Length": str(len(body)), **dict(fields)}.items():
            self.send_header(name, value)
        self.end_headers()
        if self.command == "HEAD":
            return
        self.wfile.write(body[: len(body) // 2] if cut else body)
        if cut:
            self.close_connection = True

    # ---- who asks

    def check_shared_key(self, text):
        account, _, signature = text.partition(":")
        if account != self.account or account not in KEYS:
            raise Refused(403, "AuthenticationFailed")
        want = sign(KEYS[account], shared_key_text(self.command, account, self.path, self.headers))
        if want != signature:
            detail = (
                f"The MAC signature found in the HTTP request '{signature}' is not the same as any computed signature."
            )
            raise Refused(403, "AuthenticationFailed", detail)
        date = self.headers["x-ms-date"] or self.headers["Date"]
        if abs(email.utils.parsedate_to_datetime(date).timestamp() - self.now()) > 900:
            raise Refused(403, "AuthenticationFailed", f"Request date header too old: '{date}'")
        return "key"

    def check_sas(self, q, listing):
        try:
            key = KEYS[self.account]
            is_account = "srt" in q
            text = (
                account_sas_text(self.account, q)
                if is_account
                else service_sas_text(self.account, self.container, self.blob, q)
            )
            if sign(key, text) != q["sig"]:
                raise Refused(403, "AuthenticationFailed", "Signature did not match.")
            if not sas_time(q.get("st", "2000-01-01")) <= self.now() < sas_time(q["se"]):
                raise Refused(403, "AuthenticationFailed", "Signature not valid in the specified time frame")
        except KeyError:
            raise Refused(403, "AuthenticationFailed") from None
        if is_account and "b" not in q["ss"]:
            raise Refused(403, "AuthorizationServiceMismatch")
        if is_account and ("c" if listing else "o") not in q["srt"]:
            raise Refused(403, "AuthorizationResourceTypeMismatch")
        if q.get("spr") == "https":
            raise Refused(403, "AuthorizationProtocolMismatch")
        need = "l" if listing else {"GET": "r", "HEAD": "r", "PUT": "w"}[self.command]
        if need not in q["sp"] or (listing and q.get("sr") == "b"):
            raise Refused(403, "AuthorizationPermissionMismatch")
        return "sas"

    def who(self, q, listing):
        text = self.headers.get("Authorization") or ""
        scheme, _, rest = text.partition(" ")
        if text and not re.fullmatch(r"20\d\d-\d\d-\d\d", self.headers.get("x-ms-version") or ""):
            raise Refused(400, "InvalidHeaderValue")
        if scheme == "SharedKey":
            return self.check_shared_key(rest)
        if scheme == "Bearer":
            if not self.headers.get("x-ms-date") and not self.headers.get("Date"):
                raise Refused(403, "AuthenticationFailed")
            return "token of " + check_token(rest)["sub"]
        if text:
            raise Refused(401, "InvalidAuthenticationInfo")
        return self.check_sas(q, listing) if "sig" in q else ""

    # ---- behaviours

    def behave(self, who, nth):
        c = self.container
        if len(c) < 3:
            raise Refused(400, "OutOfRangeInput")
        if c == "public" and who:
            raise Refused(403, "AuthenticationFailed")
        if c == "closed" and not who:
            raise Refused(409, "PublicAccessNotPermitted")
        if c not in ("public", "html", "empty404", "proxy404", "bare403") and not who:
            raise Refused(404, "ResourceNotFound")
        if c == "expiring" and who.startswith("token"):
            token = self.headers["Authorization"]
            with lock:
                first = not any(who in r for r in refused)
                if first or who + token in refused:
                    refused.add(who + token)
                    raise Refused(401, "InvalidAuthenticationInfo")
        for name, status, code in (
            ("gone", 404, "ContainerNotFound"),
            ("noperm", 403, "AuthorizationPermissionMismatch"),
            ("firewall", 403, "AuthorizationFailure"),
            ("nokeys", 403, "KeyBasedAuthenticationNotPermitted"),
            ("archived", 409, "BlobArchived"),
            ("nohttp", 400, "AccountRequiresHttps"),
        ):
            if c == name:
                raise Refused(status, code)
        if c == "busy" and nth <= 2:
            raise Refused(503, "ServerBusy")
        if c == "timed-out" and nth <= 2:
            raise Refused(500, "OperationTimedOut")

    def content(self):
        last = self.blob.rsplit("/", 1)[-1]
        if (self.container, self.blob) in blobs:
            return blobs[self.container, self.blob]
        if last.startswith("hello"):
            return f"hello from {self.container}".encode()
        if last == "echo":
            return self.blob.encode()
        if last in ("big", "empty"):
            return BIG if last == "big" else b""
        raise Refused(404, "BlobNotFound")

    def get(self, nth):
        data = self.content()
        etag = f'"0x{nth if self.container == "changing" else 8:X}"'
        fields = {"ETag": etag, "Accept-Ranges": "bytes", "x-ms-blob-type": "BlockBlob"}
        fields |= {"Last-Modified": "Wed, 01 Jan 2025 00:00:00 GMT", "Content-Type": "application/octet-stream"}
        if self.headers.get("If-Match", etag) not in (etag, "*"):
            raise Refused(412, "ConditionNotMet")
        # Neither suffixes nor several ranges: what is not understood is ignored.
        m = re.fullmatch(r"bytes=(\d+)-(\d*)", self.headers.get("x-ms-range") or self.headers.get("Range") or "")
        if not m:
            return self.reply(200, data, fields)
        first, last = int(m[1]), min(int(m[2] or len(data)), len(data) - 1)
        if first >= len(data):
            raise Refused(416, "InvalidRange")
        fields["Content-Range"] = f"bytes {first}-{last}/{len(data)}"
        cut = self.container == "short" and "If-Match" not in self.headers and last > 0
        return self.reply(206, data[first : last + 1], fields, cut=cut)

    def put(self, q):
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        fields = {"ETag": '"0x8"', "Last-Modified": "Wed, 01 Jan 2025 00:00:00 GMT"}
        if q.get("restype") == "container":
            pass
        elif q.get("comp") == "block":
            blocks[self.container, self.blob, q["blockid"]] = body
        elif q.get("comp") == "blocklist":
            ids = re.findall(r"<(?:Latest|Uncommitted)>([^<]*)<", body.decode())
            blobs[self.container, self.blob] = b"".join(blocks[self.container, self.blob, i] for i in ids)
        else:
            blobs[self.container, self.blob] = body
        return self.reply(201, b"", fields)

    # ---- listings

    def listing(self, q):
        c, prefix, delimiter = self.container, q.get("prefix", ""), q.get("delimiter", "")
        head = '<?xml version="1.0" encoding="utf-8"?><EnumerationResults ContainerName=\'%s\'><Prefix>%s</Prefix>%s<Blobs>'
        head %= (c, escape(prefix), f"<MaxResults>{q['maxresults']}</MaxResults>" if "maxresults" in q else "")
        properties = (
            "<Properties><Content-Length>1</Content-Length><Etag>0x8</Etag><BlobType>BlockBlob</BlobType></Properties>"
        )
        if c == "list-html":
            return "<html><body><p>Welcome</body></html>"
        if c == "list-error":
            return "<Error><Code>InternalError</Code></Error>"
        blob, folder = f"<Blob><Name>%s</Name>{properties}</Blob>", "<BlobPrefix><Name>%s</Name></BlobPrefix>"
        end = "</Blobs><NextMarker>%s</NextMarker></EnumerationResults>"
        if c == "list-endless":
            return head + blob % (prefix + "a") + end % "again"
        if c == "list-round":
            marker = {"": "one", "one": "two", "two": "three"}.get(q.get("marker", ""), "one")
            return head + blob % (prefix + "a") + end % marker
        if c == "list-names":
            encoded = "<Name Encoded='true'>" if prefix.endswith("single/") else '<Name Encoded="true">'
            odd = blob.replace("<Name>", encoded)
            if "marker" not in q:
                text = blob % (escape(prefix) + "a%20b") + odd % (urllib.parse.quote(prefix) + "%EF%BF%BE%26")
                return head + text + folder % (escape(prefix) + "sub &amp; dir/") + end % "2!68!=&amp;+/"
            assert q["marker"] == "2!68!=&+/"
            return head + blob % escape(prefix) + blob % (escape(prefix) + "last") + end % ""
        names = sorted(b for k, b in blobs if k == c and b.startswith(prefix)) or [prefix + "hello"]
        page = int(q.get("maxresults", 5000))
        items, seen = [], set()
        for name in names:
            below = name[len(prefix) :].split(delimiter, 1) if delimiter else [name]
            entry = (prefix + below[0] + delimiter, True) if len(below) > 1 else (name, False)
            if entry not in seen:
                seen.add(entry)
                items.append(entry)
        start = int(q.get("marker") or 0)
        text = "".join((folder if f else blob) % escape(n) for n, f in items[start : start + page])
        text = head + text + end % (start + page if start + page < len(items) else "")
        return text[:-30] if c == "list-cut" else text

    def answer(self, nth):
        q = dict(urllib.parse.parse_qsl(self.path.partition("?")[2], keep_blank_values=True))
        listing = q.get("comp") == "list"
        self.behave(self.who(q, listing), nth)
        if self.container == "html":
            return self.reply(404, "<html><body>Not found</body></html>")
        if self.container == "proxy404":
            return self.reply(404)
        if self.container in ("empty404", "bare403"):
            return self.reply(int(self.container[-3:]), fields={"x-ms-request-id": "1"})
        if self.container == "cut404":
            return self.reply(404, "<Error><Code>BlobNotFound</Co")
        if self.command == "PUT":
            return self.put(q)
        if listing:
            return self.reply(200, self.listing(q), {"Content-Type": "application/xml"})
        if not self.blob:
            return self.reply(200)
        return self.get(nth)

    # ---- services that give tokens

    def give(self, who, **more):
        life = 2 if "short" in who else 3600
        with lock:
            counts["_tokens"] = counts.get("_tokens", 0) + 1
        token = {"token_type": "Bearer", "access_token": make_token(who, life), **more}
        return self.reply(200, json.dumps(token | {"expires_in": str(life)}), {"Content-Type": "application/json"})

    def refuse(self, status, error, text):
        return self.reply(status, json.dumps({"error": error, "error_description": text}))

    def entra(self):
        form = dict(urllib.parse.parse_qsl(self.rfile.read(int(self.headers["Content-Length"])).decode()))
        proof = form.get("client_secret")
        if form.get("client_assertion_type") == "urn:ietf:params:oauth:client-assertion-type:jwt-bearer":
            proof = {ASSERTION: SECRET}.get(form["client_assertion"])
        if self.path != f"/login/{TENANT}/oauth2/v2.0/token":
            return self.refuse(400, "invalid_request", "AADSTS90002: Tenant not found.\r\nTrace ID: 1")
        if form["grant_type"] != "client_credentials" or form["scope"] != RESOURCE + "/.default":
            return self.refuse(400, "invalid_scope", "AADSTS70011: The provided value for scope is not valid.")
        if proof != SECRET:
            return self.refuse(401, "invalid_client", "AADSTS7000215: Invalid client secret provided.\r\nTrace ID: 1")
        return self.give(("assertion " if "client_assertion" in form else "secret ") + form["client_id"])

    def tokens(self):
        path, _, query = self.path.partition("?")
        q = dict(urllib.parse.parse_qsl(query))
        if path.startswith("/login/"):
            return self.entra()
        ways = {
            "/metadata/identity/oauth2/token": (
                "Metadata",
                "true",
                "2018-02-01",
                ("client_id", "object_id", "msi_res_id"),
            ),
            "/app/token": ("X-IDENTITY-HEADER", HEADER, "2019-08-01", ("client_id", "object_id", "mi_res_id")),
            "/ml/token": ("secret", HEADER, "2017-09-01", ("clientid",)),
        }
        name, value, version, ids = ways[path]
        if self.headers.get(name) != value or q.pop("api-version", "") != version or q.pop("resource", "") != RESOURCE:
            return self.refuse(400, "invalid_request", "Required metadata header not specified or not correct")
        if not set(q) <= set(ids):
            return self.refuse(400, "invalid_request", "a parameter that is not known")
        if "nobody" in q.values():
            return self.refuse(400, "invalid_request", "Identity not found")
        who = path.split("/")[1] + "".join(f" {k}={v}" for k, v in sorted(q.items()))
        return self.give(who, expires_on=str(int(time.time()) + 3600))

    def do_GET(self):
        path = self.path.partition("?")[0]
        if path.split("/")[1] in ("login", "metadata", "app", "ml"):
            return self.tokens()
        if path.startswith("/_count/") or path == "/_tokens":
            return self.reply(200, str(counts.get(path.removeprefix("/_count/").lstrip("/"), 0)))
        if path.startswith("/_silence"):
            return time.sleep(3)
        if path.startswith("/_sas/"):
            _, _, container, minutes, sp = path.split("/")
            return self.reply(200, make_sas(container, float(minutes), sp))
        if path == "/_token":
            return self.reply(200, make_token("given"))
        _, self.account, self.container, *rest = [*path.split("/", 3), ""]
        self.blob = urllib.parse.unquote(rest[0])
        with lock:
            nth = counts[self.container] = counts.get(self.container, 0) + 1
        try:
            self.answer(nth)
        except Refused as r:
            detail = f"<AuthenticationErrorDetail>{escape(r.detail)}</AuthenticationErrorDetail>" if r.detail else ""
            text = f"<?xml version='1.0' encoding='utf-8'?><Error><Code>{r.code}</Code><Message>m</Message>{detail}</Error>"
            length = int(self.headers.get("Content-Length") or 0)
            self.rfile.read(length)
            self.reply(r.status, text, {"x-ms-error-code": r.code, "Content-Type": "application/xml"})

    do_HEAD = do_PUT = do_POST = do_GET


class Server(http.server.ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128

    def handle_error(self, request, client_address):
        if not isinstance(sys.exc_info()[1], OSError):  # a client that has gone
            super().handle_error(request, client_address)


def serve(context=None):
    """With an SSLContext, over TLS."""
    server = Server(("127.0.0.1", 0), Handler)
    if context:
        server.socket = context.wrap_socket(server.socket, server_side=True)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return server


def main():
    print(serve().server_address[1], flush=True)
    sys.stdin.read()


if __name__ == "__main__":
    main()

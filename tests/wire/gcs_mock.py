#!/usr/bin/env python3
"""A Cloud Storage that checks every token and signature, and the servers that give tokens. Loopback, standard library only.

Prints its port and serves until standard input closes. Behind every path there may be one of three servers:

    /token, /lifeN/token            exchanges signed tokens (RS256 is checked) and refresh tokens; lives of N seconds (3600)
    /deny/token, /html/token        400 invalid_grant; a page of HTML with status 200
    /computeMetadata/v1/…           the metadata server; also /lifeN/…, /noaccount/… (404), /sick/… (503 after the first)
    /_sa/KIND, /_count/BUCKET       a service account's file (KIND: "google", or the path of its token endpoint, "" for
                                    none), how many requests a bucket has had

and buckets, whose names say how they behave. Every key "hello…" holds "hello from BUCKET".

    plain         takes tokens from here, tokens signed by the account itself with a scope, and HMAC keys KEY / secret/with+specials
    open          anybody may read                          echo      the request's head comes back as the body
    whoami        the name of the account                   denied    403 to everybody
    payer         the requester pays: project "mine-1"      unpaid    403, billing disabled
    revoked       401 to the first request, and all tokens are void; then honest    gone      NoSuchBucket
    json          answers as the JSON API does              json-gone likewise, and the bucket is not there
    html          404 with a page of HTML                   empty404  404 without a body
    gzip          objects with Content-Encoding: gzip
    versions      "0123456789"; the key "next…" has another generation with every request, and the same ETag
    limited       429 rateLimitExceeded twice               broken    503 backendError twice
    list-cut      a listing that ends early                 list-html a page of HTML with status 200
    list-endless  the same pageToken for ever               list-two  two pages
    list-round    three of them in turn for ever            late      has a clock three hours ahead
    flipped       bodies that are not those of their hashes flipped-once the first of them
"""

import base64
import gzip
import hashlib
import json
import random
import re
import sys
import threading
import time
import urllib.parse

import s3_mock
from s3_mock import Refused

SCOPES = ("https://www.googleapis.com/auth/devstorage.read_only", "https://www.googleapis.com/auth/cloud-platform")
GOOGLE = "https://oauth2.googleapis.com/token"  # as an audience, what google-auth says to every endpoint
EMAIL, KEY_ID = "robot@mine-1.iam.gserviceaccount.com", "0123abcd"
USER = {
    "type": "authorized_user",
    "client_id": "client-1.apps.googleusercontent.com",
    "client_secret": "client/secret+1",
    "refresh_token": "1//refresh/token+=",
}
lock = threading.Lock()
counts: dict[str, int] = {}
issued: dict[str, tuple[str, float]] = {}  # token: account, until


# ---- an RSA key, and checks with it --------------------------------------------------------------------------------


def is_prime(n):
    d, r = n - 1, 0
    while d % 2 == 0:
        d, r = d // 2, r + 1
    for _ in range(8):
        x = pow(random.randrange(2, n - 1), d, n)
        if x not in (1, n - 1) and not any((x := x * x % n) == n - 1 for _ in range(r - 1)):
            return False
    return True


def make_prime(bits):
    small = [p for p in range(3, 2000, 2) if all(p % q for q in range(3, int(p**0.5) + 1, 2))]
    while True:
        n = random.getrandbits(bits) | 3 << (bits - 2) | 1
        if n % 65537 != 1 and all(n % p for p in small) and is_prime(n):
            return n


def der(tag, body):
    n = len(body)
    size = bytes([n]) if n < 128 else bytes([128 | (n.bit_length() + 7) // 8]) + n.to_bytes((n.bit_length() + 7) // 8)
    return bytes([tag]) + size + body


def der_int(n):
    return der(2, n.to_bytes(n.bit_length() // 8 + 1))


class Key:
    e = 65537

    def __init__(self, bits=2048):
        p, q = make_prime(bits // 2), make_prime(bits // 2)
        self.n, d = p * q, pow(self.e, -1, (p - 1) * (q - 1))
        numbers = (0, self.n, self.e, d, p, q, d % (p - 1), d % (q - 1), pow(q, -1, p))
        text = base64.encodebytes(der(0x30, b"".join(map(der_int, numbers)))).decode()
        self.pem = f"-----BEGIN RSA PRIVATE KEY-----\n{text}-----END RSA PRIVATE KEY-----\n"

    def verify(self, signature, data):
        """RSASSA-PKCS1-v1_5 with SHA-256: RFC 8017 §8.2.2."""
        size = (self.n.bit_length() + 7) // 8
        info = bytes.fromhex("3031300d060960864801650304020105000420") + hashlib.sha256(data).digest()
        want = b"\0\1" + b"\xff" * (size - len(info) - 3) + b"\0" + info
        return len(signature) == size and pow(int.from_bytes(signature), self.e, self.n).to_bytes(size) == want


def unbase64(text):
    if not re.fullmatch(r"[A-Za-z0-9_-]*", text):
        raise ValueError("not base64url without padding")
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))


def read_jwt(token, *audiences):
    """The claims, or ValueError."""
    head, claims, signature = token.split(".")
    if not key.verify(unbase64(signature), f"{head}.{claims}".encode()):
        raise ValueError("signature")
    head, claims = json.loads(unbase64(head)), json.loads(unbase64(claims))
    now = time.time()
    if (head.get("alg"), head.get("kid")) != ("RS256", KEY_ID):
        raise ValueError("header")
    if claims["iss"] != EMAIL or claims.get("sub", EMAIL) != EMAIL or claims.get("aud") not in audiences:
        raise ValueError("claims")
    if not claims["iat"] <= now < claims["exp"] <= claims["iat"] + 3600:
        raise ValueError("times")
    if not set(claims["scope"].split()) <= set(SCOPES):
        raise ValueError("scope")
    return claims


key = Key()


def service_account(token_uri):
    info = {"type": "service_account", "project_id": "mine-1", "private_key_id": KEY_ID, "private_key": key.pem}
    return info | {"client_email": EMAIL, "client_id": "1", **({"token_uri": token_uri} if token_uri else {})}


def give(account, life):
    with lock:
        token = f"ya29.{account}-{len(issued)}"
        issued[token] = account, time.time() + life
    return {"access_token": token, "expires_in": life, "token_type": "Bearer"}


# ---- the servers ---------------------------------------------------------------------------------------------------


class Handler(s3_mock.Handler):
    bucket = ""

    def json(self, status, value, **fields):
        self.reply(status, json.dumps(value), {"Content-Type": "application/json", **fields})

    def life(self):
        m = re.match(r"/life(\d+)/", self.path)
        return int(m[1]) if m else 3600

    def do_POST(self):
        form = dict(urllib.parse.parse_qsl(self.rfile.read(int(self.headers["Content-Length"])).decode()))
        url = f"http://{self.headers['Host']}{self.path}"
        if self.path.startswith("/html/"):
            return self.reply(200, "<html>Sign in</html>")
        if self.path.startswith("/deny/"):
            return self.json(400, {"error": "invalid_grant", "error_description": "Token has been expired or revoked."})
        if form.get("grant_type") == "refresh_token":
            if any(form.get(k) != USER[k] for k in ("client_id", "client_secret", "refresh_token")):
                return self.json(401, {"error": "invalid_client", "error_description": "Unauthorized"})
            return self.json(200, give("user", self.life()))
        try:
            if form["grant_type"] != "urn:ietf:params:oauth:grant-type:jwt-bearer":
                raise ValueError("grant_type")
            read_jwt(form["assertion"], url, GOOGLE)
        except (ValueError, KeyError) as e:
            return self.json(400, {"error": "invalid_grant", "error_description": f"Invalid JWT: {e}"})
        return self.json(200, give("exchanged", self.life()))

    def metadata(self):
        flavor = {"Metadata-Flavor": "Google"}
        if self.headers.get("Metadata-Flavor") != "Google":
            return self.reply(403, "no Metadata-Flavor")
        with lock:
            nth = counts[self.path] = counts.get(self.path, 0) + 1
        if "/noaccount/" in self.path:
            return self.reply(404, "not found", flavor)
        if "/sick/" in self.path and nth > 1:
            return self.reply(503, "not now", flavor)
        if self.path.partition("?")[0].endswith("/default/token"):
            return self.json(200, give("machine", self.life()), **flavor)
        if self.path.partition("?")[0].endswith("/default/"):
            return self.json(200, {"aliases": ["default"], "email": EMAIL, "scopes": list(SCOPES)}, **flavor)
        return self.reply(200 if self.path == "/" else 404, "", {"Content-Type": "text/plain", **flavor})

    def who(self):
        """The account behind the request; None: nobody."""
        text = self.headers.get("Authorization")
        if not text:
            return None
        if text.startswith("AWS4"):
            if self.scope()[2] != "auto" or any(n.lower().startswith("x-goog-") for n in self.headers):
                raise Refused(400, "InvalidArgument")
            self.check_signature()
            return "hmac"
        token = text.removeprefix("Bearer ")
        account, until = issued.get(token, (None, 0))
        if account and time.time() < until:
            return account
        try:
            read_jwt(token, None)
        except (ValueError, KeyError):
            raise Refused(401, "AuthenticationRequired", {"WWW-Authenticate": 'Bearer error="invalid_token"'}) from None
        return "self-signed"

    def refuse_json(self, status, reason, message):
        error = {
            "code": status,
            "message": message,
            "errors": [{"domain": "global", "reason": reason, "message": message}],
        }
        return self.json(status, {"error": error})

    def paid(self):
        q = dict(urllib.parse.parse_qsl(self.path.partition("?")[2]))
        return "mine-1" in (self.headers.get("x-goog-user-project"), q.get("userProject"))

    def check(self, name, nth):
        b = self.bucket
        if self.headers.get("Accept-Encoding") != ("gzip" if name else "identity"):
            raise Refused(400, "AcceptEncoding")
        if not self.who() and b not in ("open", "echo"):
            raise Refused(403, "AccessDenied", extra="<Details>Anonymous caller does not have access.</Details>")
        if b == "revoked" and nth == 1:
            for token in list(issued):
                del issued[token]
            raise Refused(401, "AuthenticationRequired")
        if b == "denied":
            raise Refused(403, "AccessDenied")
        if b == "payer" and not self.paid():
            raise Refused(400, "UserProjectMissing")
        if b == "unpaid":
            raise Refused(403, "UserProjectAccountProblem")
        if b == "gone":
            raise Refused(404, "NoSuchBucket")

    def read(self, name, nth):
        b = self.bucket
        self.check(name, nth)
        if b == "echo":
            return self.reply(200, self.requestline + "\r\n" + str(self.headers))
        if b == "whoami":
            return self.reply(200, self.who())
        if b == "json":
            return self.refuse_json(404, "notFound", f"No such object: json/{name}")
        if b == "json-gone":
            return self.refuse_json(404, "notFound", "The specified bucket does not exist.")
        if b == "limited" and nth <= 2:
            return self.refuse_json(429, "rateLimitExceeded", "slow down")
        if b == "broken" and nth <= 2:
            return self.refuse_json(503, "backendError", "later")
        if b == "html":
            return self.reply(404, "<html><body>Not found</body></html>")
        if b == "empty404":
            return self.reply(404, "")
        if b == "gzip":
            return self.reply(200, gzip.compress(b"{}"), {"Content-Encoding": "gzip", "ETag": '"1"'})
        if b == "versions":
            return self.part(b"0123456789", str(nth) if name.startswith("next") else "7")
        if not name.split("/")[-1].startswith("hello"):
            raise Refused(404, "NoSuchKey")
        body = b"hello from " + b.encode()
        hashes = f"crc32c={s3_mock.crc32c(body)},md5=AAAAAAAAAAAAAAAAAAAAAA=="
        if b == "flipped" or (b == "flipped-once" and nth == 1):
            body = body[:-1] + b"?"
        return self.reply(200, body, {"ETag": '"1"', "x-goog-generation": "1", "x-goog-hash": hashes})

    def part(self, body, generation):
        fields = {"ETag": '"same"', "x-goog-generation": generation}
        m = re.fullmatch(r"bytes=(\d+)-(\d+)", self.headers.get("Range", ""))
        if not m:
            return self.reply(200, body, fields)
        first, last = int(m[1]), min(int(m[2]), len(body) - 1)
        return self.reply(206, body[first : last + 1], {**fields, "Content-Range": f"bytes {first}-{last}/{len(body)}"})

    def list(self, nth):
        b, q = self.bucket, dict(urllib.parse.parse_qsl(self.path.partition("?")[2], keep_blank_values=True))
        prefix = q["prefix"]
        self.check("", nth)
        if b == "list-html":
            return self.reply(200, "<html><body>Welcome</body></html>")
        page = {"kind": "storage#objects"}
        if b == "list-endless":
            page |= {"items": [{"name": prefix + "a"}], "nextPageToken": "again"}
        elif b == "list-round":
            token = {"": "one", "one": "two", "two": "three"}.get(q.get("pageToken", ""), "one")
            page |= {"items": [{"name": prefix + "a"}], "nextPageToken": token}
        elif b == "list-two" and "pageToken" not in q:
            page |= {"items": [{"name": prefix}, {"name": prefix + "a\1&b+ü\n"}], "nextPageToken": "1/=+&"}
        elif b == "list-two":
            if q["pageToken"] != "1/=+&":
                raise Refused(400, "InvalidArgument")
            page |= {"items": [{"name": prefix + "last"}], "prefixes": [prefix + "sub dir/"]}
        elif b == "list-other":
            page |= {"items": [{"name": "elsewhere"}]}
        elif b != "list-empty":
            page |= {"items": [{"name": prefix + "hello"}]}
        text = json.dumps(page)
        return self.reply(200, text[:-5] if b == "list-cut" else text)

    def do_GET(self):
        path = urllib.parse.unquote(self.path.partition("?")[0])
        if "/computeMetadata/" in path or path == "/":
            return self.metadata()
        _, self.bucket, *rest = path.split("/", 2)
        name = rest[0] if rest else ""
        if self.bucket == "_sa":
            uri = GOOGLE if name == "google" else name and f"http://{self.headers['Host']}/{name}"
            return self.json(200, service_account(uri))
        if self.bucket == "_count":
            return self.reply(200, str(counts.get(name, 0)))
        listing = re.fullmatch(r"/storage/v1/b/([^/]+)/o", path)
        if listing:
            self.bucket = listing[1]
        with lock:
            nth = counts[self.bucket] = counts.get(self.bucket, 0) + 1
        try:
            if listing:
                self.list(nth)
            elif "list-type=2" in self.path:
                self.check("", nth)
                self.reply(200, self.listing())
            else:
                self.read(name, nth)
        except Refused as r:
            if listing:
                return self.refuse_json(r.status, {401: "required", 404: "notFound"}.get(r.status, "forbidden"), r.code)
            text = f"<?xml version='1.0' encoding='UTF-8'?><Error><Code>{r.code}</Code><Message>m</Message>{r.extra}</Error>"
            self.reply(r.status, text, r.fields)


def serve():
    server = s3_mock.Server(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return server


if __name__ == "__main__":
    print(serve().server_address[1], flush=True)
    sys.stdin.read()

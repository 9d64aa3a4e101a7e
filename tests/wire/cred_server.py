#!/usr/bin/env python3
"""The services that give AWS credentials, on loopback: instance metadata, containers, STS, single sign-on.

Prints its port and serves until standard input closes; standard library only. The path says which service and how it
behaves; words before it change that for one request:

    /imds/latest/…              version 2 alone: PUT for a token, which every GET must carry
    /imds1/latest/…             version 1 alone: knows no tokens
    /norole/latest/…, /failing/latest/…, /bare/latest/…, /slow/…   no role; a role that fails; 200 without keys; 5 s
    /container/creds            Authorization must be TOKEN, or absent for /open/creds
    /sts/                       AssumeRole (the signature is checked) and AssumeRoleWithWebIdentity, as forms
    /sso/federation/credentials, /oidc/token
    /vault/…                    objects of a bucket: signed by what STS has given, while it lives and is not revoked
    /revoke                     what has been given until now is no longer accepted by the vault
    /lifeN/…                    what is given lives for N seconds (3600)
    /nthN/…                     the first N requests of this path get status 500
    /cut/…                      a body cut at 100 of 2000 bytes, then 503 with a long body, then the whole
    /count                      how many credentials have been given, and how many that had ended were refused

STS accepts the keys in KEYS and all that it has given itself; roles whose name has "deny" are refused. External id,
session name and duration come back within the access key, so that a test can see them.
"""

import datetime
import hashlib
import hmac
import http.server
import json
import sys
import threading
import time
import urllib.parse

KEYS = {"AKIAFILE": "file/secret+1", "AKIAENV": "env/secret+1", "AKIAPROCESS": "process/secret+1"}
TOKEN = "container-token/+="
WEB_TOKEN = "eyJ.web.identity"
SSO_TOKEN = "sso-access-token"
SSO_CLIENT, SSO_SECRET = "client-1", "client/secret+1"
REFRESH_TOKENS = {"refresh/token+1", "refresh/token+2", "refresh/token+3"}
refresh_tokens = set(REFRESH_TOKENS)

lock = threading.Lock()
given = {"count": 0, "refused": 0}
seen: dict[str, int] = {}
issued: dict[str, tuple[str, str, float]] = {}  # id: secret, token, until


def iso(t):
    return datetime.datetime.fromtimestamp(t, datetime.UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def make(name, life):
    """A credential whose id says who gave it."""
    secret, token, until = f"secret/of+{name}", f"token/of+{name}==", time.time() + life
    with lock:
        given["count"] += 1
        issued[name] = (secret, token, until)
    return name, secret, token, until


class Refusal(Exception):
    def __init__(self, status, code, message="no"):
        self.status, self.code, self.message = status, code, message


def mac(key, text):
    return hmac.new(key, text.encode(), hashlib.sha256).digest()


def check_signature(h, payload, wanted):
    """AWS Signature Version 4 of a request, from the server's side."""
    head = h.headers
    parts = dict(
        p.strip().split("=", 1)
        for p in head.get("Authorization", "").removeprefix("AWS4-HMAC-SHA256").split(",")
        if "=" in p
    )
    if not parts:
        raise Refusal(403, "MissingAuthenticationToken")
    key_id, day, region, service, end = parts["Credential"].split("/")
    secret, token, until = KEYS.get(key_id), None, None
    if key_id in issued:
        secret, token, until = issued[key_id]
    if secret is None:
        raise Refusal(403, "InvalidClientTokenId", "The security token included in the request is invalid.")
    if until is not None and time.time() >= until:
        with lock:
            given["refused"] += 1
        raise Refusal(400, "ExpiredToken", "The security token included in the request is expired")
    if token != head.get("X-Amz-Security-Token"):
        raise Refusal(403, "InvalidClientTokenId", "wrong session token")
    names = parts["SignedHeaders"].split(";")
    if (
        not {"host", "x-amz-date"} <= set(names)
        or (token and "x-amz-security-token" not in names)
        or end != "aws4_request"
        or service != wanted
    ):
        raise Refusal(403, "IncompleteSignature")
    lines = [h.command, urllib.parse.urlsplit(h.path).path, ""]
    lines += [f"{n}:{' '.join(head[n].split())}" for n in names] + ["", ";".join(names), payload]
    scope = f"{day}/{region}/{service}/{end}"
    text = "\n".join(
        ["AWS4-HMAC-SHA256", head["X-Amz-Date"], scope, hashlib.sha256("\n".join(lines).encode()).hexdigest()]
    )
    key = f"AWS4{secret}".encode()
    for part in (day, region, service, end):
        key = mac(key, part)
    if mac(key, text).hex() != parts["Signature"]:
        raise Refusal(403, "SignatureDoesNotMatch", "The request signature we calculated does not match")
    return key_id, region


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def reply(self, status, text, kind="text/plain"):
        body = text.encode()
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do(self):
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        url = urllib.parse.urlsplit(self.path)
        words = url.path.strip("/").split("/")
        self.life = 3600
        try:
            while words[0].startswith(("life", "nth")):
                word = words.pop(0)
                if word.startswith("life"):
                    self.life = int(word[4:])
                    continue
                with lock:
                    seen[url.path] = seen.get(url.path, 0) + 1
                if seen[url.path] <= int(word[3:]):
                    self.reply(500, "")
                    return
            service = words.pop(0)
            query = dict(urllib.parse.parse_qsl(url.query))
            if service == "count":
                self.reply(200, f"{given['count']} {given['refused']}")
            elif service == "vault":
                check_signature(self, self.headers.get("x-amz-content-sha256"), "s3")
                self.reply(200, "treasure")
            elif service == "revoke":
                with lock:
                    for key, (secret, token, _) in issued.items():
                        issued[key] = secret, f"{token} revoked", 0
                self.reply(200, "done")
            elif service == "cut":
                self.cut(url.path)
            elif service == "slow":
                time.sleep(5)
                self.reply(404, "")
            elif service in ("imds", "imds1", "norole", "failing", "bare"):
                self.imds(service, words)
            elif service in ("container", "open"):
                self.container(service)
            elif service == "sts":
                self.sts(dict(urllib.parse.parse_qsl(body.decode(), keep_blank_values=True)), body)
            elif service == "sso":
                self.sso(query)
            elif service == "oidc":
                self.oidc(json.loads(body))
            else:
                self.reply(404, "no such service")
        except Refusal as r:
            error = f"<Error><Type>Sender</Type><Code>{r.code}</Code><Message>{r.message}</Message></Error>"
            if service != "vault":
                error = f'<ErrorResponse xmlns="https://sts.amazonaws.com/doc/2011-06-15/">{error}</ErrorResponse>'
            self.reply(r.status, error, "text/xml")
        except (BrokenPipeError, ConnectionResetError):
            self.close_connection = True

    do_GET = do_PUT = do_POST = do

    def as_json(self, name, **more):
        key, secret, token, until = make(name, self.life)
        self.reply(
            200,
            json.dumps(
                {**more, "AccessKeyId": key, "SecretAccessKey": secret, "Token": token, "Expiration": iso(until)}
            ),
            "application/json",
        )

    def cut(self, path):
        with lock:
            seen[path] = seen.get(path, 0) + 1
        if seen[path] == 2:
            self.reply(503, "x" * 3000)
            return
        self.send_response(200)
        self.send_header("Content-Length", "2000")
        self.end_headers()
        self.wfile.write(b"z" * (100 if seen[path] == 1 else 2000))
        self.close_connection = True

    def imds(self, kind, words):
        path, token = "/".join(words), f"token-of-{kind}=="
        if path == "latest/api/token":
            if kind == "imds1" or self.command != "PUT":
                self.reply(405, "")
            elif self.headers.get("X-aws-ec2-metadata-token-ttl-seconds") != "21600":
                self.reply(400, "")
            else:
                self.reply(200, token)
        elif self.headers.get("X-aws-ec2-metadata-token") != (None if kind == "imds1" else token):
            self.reply(401, "")
        elif kind == "norole":
            self.reply(404, "")
        elif path == "latest/meta-data/iam/security-credentials":
            self.reply(200, "the-role")
        elif path != "latest/meta-data/iam/security-credentials/the-role":
            self.reply(404, "")
        elif kind == "failing":
            self.reply(
                200, json.dumps({"Code": "AssumeRoleUnauthorizedAccess", "Message": "EC2 cannot assume the role"})
            )
        elif kind == "bare":
            self.reply(200, json.dumps({"Code": "Success"}))
        else:
            self.as_json(f"ASIA{kind.upper()}", Code="Success")

    def container(self, kind):
        if self.headers.get("Authorization") != (TOKEN if kind == "container" else None):
            self.reply(401, "who is there?")
        else:
            self.as_json("ASIACONTAINER")

    def sts(self, form, body):
        role = form.get("RoleArn", "").rpartition("/")[2]
        if "deny" in role:
            raise Refusal(
                403, "AccessDenied", f"User is not authorized to perform: sts:AssumeRole on {role} &amp; more"
            )
        if form.get("Version") != "2011-06-15" or len(form.get("RoleSessionName", "")) < 2 or not role:
            raise Refusal(400, "ValidationError")
        if form["Action"] == "AssumeRole":
            signer, region = check_signature(self, hashlib.sha256(body).hexdigest(), "sts")
            name = "-".join(
                [f"ASIA{role}", signer, region, form.get("ExternalId", ""), form.get("DurationSeconds", "")]
            )
        elif form["Action"] == "AssumeRoleWithWebIdentity":
            if form.get("WebIdentityToken") != WEB_TOKEN or self.headers.get("Authorization"):
                raise Refusal(400, "InvalidIdentityToken")
            name = f"ASIAWEB-{role}"
        else:
            raise Refusal(400, "InvalidAction")
        if not form["RoleSessionName"].startswith(("headrace-", "botocore-session-")):
            name += f"-{form['RoleSessionName']}"
        key, secret, token, until = make(name, self.life)
        self.reply(
            200,
            f'<{form["Action"]}Response xmlns="https://sts.amazonaws.com/doc/2011-06-15/"><{form["Action"]}Result>\n<Credentials>'
            f"<AccessKeyId>{key}</AccessKeyId><SecretAccessKey>{secret}</SecretAccessKey><SessionToken>{token}</SessionToken>"
            f"<Expiration>{iso(until)}</Expiration></Credentials>\n<AssumedRoleUser><Arn>arn:aws:sts::1:assumed-role/{role}/x</Arn>"
            f"<AssumedRoleId>X:x</AssumedRoleId></AssumedRoleUser></{form['Action']}Result></{form['Action']}Response>",
            "text/xml",
        )  # fmt: skip

    def oidc(self, form):
        """CreateToken of the sign-on service: a refresh token is good for one use."""
        good = {"clientId": SSO_CLIENT, "clientSecret": SSO_SECRET, "grantType": "refresh_token"}
        token = form.pop("refreshToken", None)
        if form != good or token not in refresh_tokens:
            self.reply(400, json.dumps({"error": "invalid_grant", "error_description": "no"}), "application/json")
            return
        refresh_tokens.remove(token)
        refresh_tokens.add(token + "+")
        more = {"expiresIn": 3600, "tokenType": "Bearer", "refreshToken": token + "+"}
        self.reply(200, json.dumps({"accessToken": SSO_TOKEN, **more}), "application/json")

    def sso(self, query):
        if self.headers.get("x-amz-sso_bearer_token") != SSO_TOKEN:
            self.reply(401, json.dumps({"message": "Session token not found or invalid"}), "application/json")
            return
        key, secret, token, until = make(f"ASIASSO-{query['role_name']}-{query['account_id']}", self.life)
        self.reply(
            200,
            json.dumps({"roleCredentials": {"accessKeyId": key, "secretAccessKey": secret, "sessionToken": token, "expiration": int(until) * 1000}}),
            "application/json",
        )  # fmt: skip


class Server(http.server.ThreadingHTTPServer):
    def handle_error(self, *_):
        """Clients may go away at any time."""


def serve():
    server = Server(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return server


if __name__ == "__main__":
    print(serve().server_port, flush=True)
    sys.stdin.read()

#!/usr/bin/env python3
"""An S3 that checks every signature and answers as real ones do at their worst. Loopback, standard library only.

Prints its port and serves until standard input closes. Path style; the bucket's name says how it behaves, and every key
"hello…" of it holds "hello from BUCKET". The account is KEY / secret/with+specials; with the session token NEW the secret
is "new", with OLD it is "old". The region is us-east-1 unless the bucket's name says otherwise.

    plain         honest; so are all buckets once they have had their way
    echo          the request's head comes back as the body
    public        anonymous requests only: signed ones get 403     unlisted       likewise, and no listings
    moved-301     is in eu-west-3: 301 with x-amz-bucket-region     moved-400   400 AuthorizationHeaderMalformed, <Region>
    moved-403     403 with the header                              moved-host  301 whose <Endpoint> alone tells
    moved-307     307 whose Location alone tells                   moved-head  301 that tells nothing but to a HEAD
    moved-loop    names another region every time                  moved-evil  names "evil.example/x"
    late          its clock is three hours ahead
    payer         x-amz-request-payer: requester, and signed
    expired       400 ExpiredToken for the token OLD               denied      403 AccessDenied
    expires       the same from its second request on
    throttle      503 SlowDown twice, then honest                  slow-400    400 RequestTimeout twice
    broken        500 InternalError twice                          gone        404 NoSuchBucket
    html          404 with a page of HTML                          empty404    404 without a body; proxy404: nor a sign of S3
    cut404        404 whose XML is cut
    list-cut      a listing whose XML is cut                       list-error  <Error> with status 200
    list-endless  the same continuation token for ever             list-html   a page of HTML with status 200
    list-round    three tokens in turn for ever
    list-bytes    names that XML cannot hold, two pages
    flipped       bodies that are not those of their checksums     flipped-once   the first of them
    of-parts      a checksum of the checksums of parts

/_count/BUCKET: how many requests it has had.
"""

import base64
import datetime
import email.utils
import hashlib
import hmac
import http.server
import re
import sys
import threading
import time
import urllib.parse

SECRETS = {None: "secret/with+specials", "NEW": "new", "OLD": "old"}
lock = threading.Lock()
counts: dict[str, int] = {}


def hash_hmac(key, text):
    return hmac.new(key, text.encode(), hashlib.sha256).digest()


def crc32c(data):
    """As stores write it: four bytes, the highest first, in Base64."""
    crc = 0xFFFFFFFF
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (0x82F63B78 if crc & 1 else 0)
    return base64.b64encode((crc ^ 0xFFFFFFFF).to_bytes(4, "big")).decode()


def strict(text, safe=""):
    return urllib.parse.quote(text, safe="-._~" + safe)


class Refused(Exception):
    def __init__(self, status, code, fields=(), extra=""):
        super().__init__(code)
        self.status, self.code, self.fields, self.extra = status, code, dict(fields), extra


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def reply(self, status, body, fields=()):
        body = body.encode() if isinstance(body, str) else body
        self.send_response_only(status)
        for name, value in {"Date": self.date(), "Content-Length": str(len(body)), **dict(fields)}.items():
            self.send_header(name, value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def now(self):
        return time.time() + (3 * 3600 if self.bucket == "late" else 0)

    def date(self):
        return email.utils.formatdate(self.now(), usegmt=True)

    # ---- signatures, as the documentation has them

    def scope(self):
        """(access key, day, region) of the Authorization, and what it says of headers and signature."""
        text = self.headers.get("Authorization")
        if not text:
            return None
        m = re.fullmatch(
            r"AWS4-HMAC-SHA256 Credential=([^/]+)/(\d{8})/([^/]+)/s3/aws4_request, SignedHeaders=([^,]+), Signature=(\w+)",
            text,
        )
        if not m:
            raise Refused(400, "AuthorizationHeaderMalformed")
        return m.groups()

    def check_signature(self):
        if not (scope := self.scope()):
            return
        key, day, region, names, signature = scope
        if key != "KEY":
            raise Refused(403, "InvalidAccessKeyId")
        named = names.split(";")
        sent = {n.lower() for n in self.headers}
        if named != sorted(named) or not {"host", *(n for n in sent if n.startswith("x-amz-"))} <= set(named):
            raise Refused(403, "AccessDenied")
        path, _, query = self.path.partition("?")
        if path != strict(urllib.parse.unquote_to_bytes(path), "/") or query != "&".join(
            sorted(f"{strict(k)}={strict(v)}" for k, v in urllib.parse.parse_qsl(query, keep_blank_values=True))
        ):
            raise Refused(400, "InvalidURI")
        date = self.headers["x-amz-date"]
        canonical = "\n".join(
            [self.command, path, query, *(f"{n}:{self.headers[n]}" for n in named), "", names]
            + [self.headers["x-amz-content-sha256"]]
        )
        text = (
            f"AWS4-HMAC-SHA256\n{date}\n{day}/{region}/s3/aws4_request\n"
            + hashlib.sha256(canonical.encode()).hexdigest()
        )
        k = ("AWS4" + SECRETS[self.headers.get("x-amz-security-token")]).encode()
        for part in (day, region, "s3", "aws4_request"):
            k = hash_hmac(k, part)
        if hash_hmac(k, text).hex() != signature or date[:8] != day:
            raise Refused(403, "SignatureDoesNotMatch")
        when = datetime.datetime.strptime(date, "%Y%m%dT%H%M%SZ").replace(tzinfo=datetime.UTC).timestamp()
        if abs(when - self.now()) > 900:
            raise Refused(403, "RequestTimeTooSkewed")

    # ---- behaviours

    def behave(self, nth):
        scope = self.scope()
        region = scope[2] if scope else None
        there = {"x-amz-bucket-region": "eu-west-3"}
        wrong = region not in (None, "eu-west-3")
        b, token = self.bucket, self.headers.get("x-amz-security-token")
        if b == "moved-301" and wrong:
            raise Refused(301, "PermanentRedirect", there)
        if b == "moved-400" and wrong:
            raise Refused(400, "AuthorizationHeaderMalformed", extra="<Region>eu-west-3</Region>")
        if b == "moved-403" and wrong:
            raise Refused(403, "AccessDenied", there)
        if b == "moved-host" and wrong:
            extra = "<Endpoint>moved-host.s3.eu-west-3.amazonaws.com</Endpoint>"
            raise Refused(301, "PermanentRedirect", extra=extra)
        if b == "moved-307" and wrong:
            to = {"Location": "https://moved-307.s3-eu-west-3.amazonaws.com/hello"}
            raise Refused(307, "TemporaryRedirect", to)
        if b == "moved-head" and (wrong or self.command == "HEAD"):
            raise Refused(301, "PermanentRedirect", there if self.command == "HEAD" else {})
        if b == "moved-loop":
            raise Refused(301, "PermanentRedirect", {"x-amz-bucket-region": f"eu-west-{nth + 10}"})
        if b == "moved-evil":
            raise Refused(301, "PermanentRedirect", {"x-amz-bucket-region": "evil.example/x"})
        if b in ("public", "unlisted") and scope:
            raise Refused(403, "AccessDenied")
        if b == "unlisted" and "list-type=2" in self.path:
            raise Refused(403, "AccessDenied")
        if b not in ("public", "unlisted", "echo") and not scope:
            raise Refused(403, "AccessDenied")
        if b == "payer" and self.headers.get("x-amz-request-payer") != "requester":
            raise Refused(403, "AccessDenied")
        if b == "expired" and token == "OLD":
            raise Refused(400, "ExpiredToken")
        if b == "expires" and token == "OLD" and nth > 1:
            raise Refused(400, "ExpiredToken")
        if b == "denied":
            raise Refused(403, "AccessDenied")
        if b == "throttle" and nth <= 2:
            raise Refused(503, "SlowDown")
        if b == "slow-400" and nth <= 2:
            raise Refused(400, "RequestTimeout")
        if b == "broken" and nth <= 2:
            raise Refused(500, "InternalError")
        if b == "gone":
            raise Refused(404, "NoSuchBucket")

    def listing(self):
        q = dict(urllib.parse.parse_qsl(self.path.partition("?")[2], keep_blank_values=True))
        page = "<?xml version='1.0'?>\n<ListBucketResult><Name>b</Name>%s</ListBucketResult>"
        encoded = "<EncodingType>url</EncodingType>" if q.get("encoding-type") == "url" else ""
        key = "<Contents><Key>%s</Key><Size>1</Size></Contents>"
        prefix = strict(q.get("prefix", ""), "/")
        if self.bucket == "list-html":
            return "<html><body><p>Welcome</body></html>"
        if self.bucket == "list-error":
            return "<Error><Code>InternalError</Code></Error>"
        if self.bucket == "list-endless":
            more = "<IsTruncated>true</IsTruncated><NextContinuationToken>again</NextContinuationToken>"
            return page % (encoded + more + key % (prefix + "a"))
        if self.bucket == "list-round":
            token = {"": "one", "one": "two", "two": "three"}.get(q.get("continuation-token", ""), "one")
            more = f"<IsTruncated>true</IsTruncated><NextContinuationToken>{token}</NextContinuationToken>"
            return page % (encoded + more + key % (prefix + "a"))
        if self.bucket == "list-bytes" and "continuation-token" not in q:
            more = "<IsTruncated>true</IsTruncated><NextContinuationToken>1/=+&amp;</NextContinuationToken>"
            folder = f"<CommonPrefixes><Prefix>{prefix}sub%0Adir/</Prefix></CommonPrefixes>"
            return page % (more + key % (prefix + "a%01%26b+c%2B") + folder + encoded)
        if self.bucket == "list-bytes":
            assert q["continuation-token"] == "1/=+&"
            return page % (encoded + "<IsTruncated>false</IsTruncated>" + key % prefix + key % (prefix + "last"))
        text = page % (encoded + "<IsTruncated>false</IsTruncated>" + key % (prefix + "hello"))
        return text[:-30] if self.bucket == "list-cut" else text

    def answer(self, key, nth):
        self.check_signature()
        self.behave(nth)
        if self.bucket == "echo":
            return self.reply(200, self.requestline + "\r\n" + str(self.headers))
        if "list-type=2" in self.path:
            return self.reply(200, self.listing())
        if self.bucket == "html":
            return self.reply(404, "<html><body>Not found</body></html>")
        if self.bucket in ("empty404", "proxy404"):
            return self.reply(404, "", {"x-amz-request-id": "R1"} if self.bucket == "empty404" else ())
        if self.bucket == "cut404":
            return self.reply(404, "<Error><Code>NoSuchKey</Co")
        if not key.split("/")[-1].startswith("hello"):
            raise Refused(404, "NoSuchKey")
        body, fields = b"hello from " + self.bucket.encode(), {"ETag": '"1"'}
        if self.headers.get("x-amz-checksum-mode") == "ENABLED" and self.bucket != "plain":
            parts = self.bucket == "of-parts"
            fields["x-amz-checksum-crc32c"] = crc32c(body) + ("-3" if parts else "")
            fields["x-amz-checksum-type"] = "COMPOSITE" if parts else "FULL_OBJECT"
        if self.bucket == "flipped" or (self.bucket == "flipped-once" and nth == 1):
            body = body[:-1] + b"?"
        return self.reply(200, body, fields)

    def do_GET(self):
        _, self.bucket, *rest = urllib.parse.unquote(self.path.partition("?")[0]).split("/", 2)
        if self.bucket == "_count":
            return self.reply(200, str(counts.get(rest[0], 0)))
        with lock:
            nth = counts[self.bucket] = counts.get(self.bucket, 0) + 1
        try:
            self.answer(rest[0] if rest else "", nth)
        except Refused as r:
            text = f"<?xml version='1.0' encoding='UTF-8'?>\n<Error><Code>{r.code}</Code><Message>m</Message>{r.extra}</Error>"
            self.reply(r.status, text, r.fields)

    do_HEAD = do_PUT = do_GET


class Server(http.server.ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128


def main():
    server = Server(("127.0.0.1", 0), Handler)
    print(server.server_address[1], flush=True)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    sys.stdin.read()


if __name__ == "__main__":
    main()

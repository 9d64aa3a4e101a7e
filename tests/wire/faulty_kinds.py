"""How the four kinds of object servers spell the same things: addresses, errors, versions, tokens. For faulty.py."""

from __future__ import annotations

import base64
import json
import re
import threading
import time

KEY = base64.b64encode(b"azure account key of the tests, 64 bytes long, as real ones are..").decode()


class Tokens:
    """What a credential service gives, for `life` seconds each."""

    def __init__(self, life: float) -> None:
        self.life, self.lock = life, threading.Lock()
        self.given: list[tuple[float, float]] = []  # when each was, and when it ends
        self.refused = 0

    def give(self) -> tuple[int, int]:
        """Number and end (Unix seconds) of a new one."""
        with self.lock:
            end = int(time.time() + self.life)
            self.given.append((time.time(), end))
            return len(self.given) - 1, end

    def valid(self, name: str) -> bool:
        number = re.search(r"token-(\d+)-", name)
        with self.lock:
            good = bool(number) and time.time() < self.given[int(number[1])][1]
            self.refused += not good
            return good

    def revoke(self) -> None:
        """All that are older than a second and a half are void: younger ones a client has no reason to fetch again."""
        with self.lock:
            now = time.time()
            self.given = [(since, 0 if since < now - 1.5 else end) for since, end in self.given]


class Http:
    name = "http"
    prefix = "/"
    suffixes = True  # ranges from the end
    tokens: Tokens | None = None

    def __init__(self, life: float = 0) -> None:
        self.tokens = Tokens(life) if life else None

    def open(self, port: int) -> tuple[str, dict[str, object]]:
        """URL and storage options."""
        return f"http://127.0.0.1:{port}", {}

    def environment(self, port: int) -> dict[str, str]:
        """For renewed tokens."""
        return {}

    def version(self, etag: str) -> list[str]:
        return [f'ETag: "{etag}"']

    def error(self, status: int, code: str) -> tuple[list[str], bytes]:
        return [], code.encode()

    def missing(self) -> tuple[int, str]:
        return 404, "NoSuchKey"

    def busy(self) -> tuple[int, str]:
        return 503, "SlowDown"

    def grant(self, path: str) -> bytes | None:
        """The answer of a service of tokens."""
        return None

    def authorization(self, fields: dict[str, str]) -> str:
        return fields.get("authorization", "")

    def refusal(self) -> tuple[int, str]:
        return 401, "Unauthorized"


class S3(Http):
    name, prefix = "s3", "/bkt/"
    region = "us-east-1"

    def open(self, port: int) -> tuple[str, dict[str, object]]:
        options: dict[str, object] = {"endpoint_url": f"http://127.0.0.1:{port}", "region": "us-east-1"}
        return "s3://bkt", options | ({} if self.tokens else {"key": "KEY", "secret": "SECRET"})

    def environment(self, port: int) -> dict[str, str]:
        return {"AWS_CONTAINER_CREDENTIALS_FULL_URI": f"http://127.0.0.1:{port}/grant/container"}

    def error(self, status: int, code: str) -> tuple[list[str], bytes]:
        text = f"<?xml version='1.0' encoding='UTF-8'?>\n<Error><Code>{code}</Code><Message>m</Message></Error>"
        return ["Content-Type: application/xml"], text.encode()

    def grant(self, path: str) -> bytes | None:
        assert self.tokens
        number, end = self.tokens.give()
        until = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(end))
        keys = {"AccessKeyId": f"ASIA{number}", "SecretAccessKey": f"secret-{number}", "Expiration": until}
        return json.dumps(keys | {"Token": f"token-{number}-of-aws"}).encode()

    def authorization(self, fields: dict[str, str]) -> str:
        return fields.get("x-amz-security-token", "") if self.tokens else fields.get("authorization", "")

    def refusal(self) -> tuple[int, str]:
        return 400, "ExpiredToken"


class Gcs(Http):
    name, prefix = "gs", "/bkt/"

    def open(self, port: int) -> tuple[str, dict[str, object]]:
        options: dict[str, object] = {"endpoint_url": f"http://127.0.0.1:{port}"}
        return "gs://bkt", options | {"token": "cloud" if self.tokens else "ya29.token"}

    def environment(self, port: int) -> dict[str, str]:
        return {"GCE_METADATA_HOST": f"127.0.0.1:{port}"}

    def version(self, etag: str) -> list[str]:
        return [f'ETag: "{etag}"', f"x-goog-generation: {int(etag, 16)}"]

    def error(self, status: int, code: str) -> tuple[list[str], bytes]:
        return S3.error(self, status, code)  # type: ignore[arg-type]

    def busy(self) -> tuple[int, str]:
        return 429, "SlowDown"

    def grant(self, path: str) -> bytes | None:
        assert self.tokens
        number, end = self.tokens.give()
        return json.dumps(
            {"access_token": f"ya29.token-{number}-of-google", "expires_in": int(end - time.time())}
        ).encode()


class Azure(Http):
    name, prefix = "az", "/acct/box/"
    suffixes = False

    def open(self, port: int) -> tuple[str, dict[str, object]]:
        options: dict[str, object] = {
            "account_name": "acct",
            "endpoint": f"http://127.0.0.1:{port}/acct",
            "allow_http": True,
        }
        if self.tokens:
            options["msi_endpoint"] = f"http://127.0.0.1:{port}/grant/app"
        return "az://box", options | ({} if self.tokens else {"account_key": KEY})

    def environment(self, port: int) -> dict[str, str]:
        return {"IDENTITY_HEADER": "header", "IDENTITY_ENDPOINT": f"http://127.0.0.1:{port}/grant/app"}

    def version(self, etag: str) -> list[str]:
        return [f'ETag: "0x{etag.upper()}"', "x-ms-blob-type: BlockBlob"]

    def error(self, status: int, code: str) -> tuple[list[str], bytes]:
        return [
            f"x-ms-error-code: {code}"
        ], f"<?xml version='1.0' encoding='utf-8'?><Error><Code>{code}</Code><Message>m</Message></Error>".encode()

    def missing(self) -> tuple[int, str]:
        return 404, "BlobNotFound"

    def busy(self) -> tuple[int, str]:
        return 503, "ServerBusy"

    def grant(self, path: str) -> bytes | None:
        assert self.tokens
        number, end = self.tokens.give()
        given = {"access_token": f"token-{number}-of-azure", "expires_on": str(end), "token_type": "Bearer"}
        return json.dumps(given | {"expires_in": str(int(end - time.time()))}).encode()

    def refusal(self) -> tuple[int, str]:
        return 401, "InvalidAuthenticationInfo"


KINDS: dict[str, type[Http]] = {k.name: k for k in (Http, S3, Gcs, Azure)}

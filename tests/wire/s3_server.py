#!/usr/bin/env python3
"""A real S3 for tests/wire, filled and driven with botocore: `s3_server.py rgw` (Ceph) or `s3_server.py moto`.

Prints "PORT TLS_PORT CERTIFICATE ID SECRET" (0 and "-" where there is no TLS), or "skip REASON". Then each line on standard
input is a command, answered by one line; it ends with its standard input. Keys and bodies are in hexadecimal.

    put BUCKET KEY BODY         fill BUCKET PREFIX N      folder BUCKET PREFIX DIRECTORY
    presign BUCKET KEY          token SECONDS             throttle N

There are the buckets bkt; dotted.bkt; open, which anybody reads; reader, of which the user READER / readersecret may get
objects and not list them; payer, which that user reads when the requester pays.
"""

import json
import os
import pathlib
import sys
import urllib.request
from concurrent.futures import ThreadPoolExecutor

import rgw

ID, SECRET = "HEADRACETEST00000001", "test/secret+with=specials0000000000000001"
READER = ("READER", "readersecret")
ROLE = "arn:aws:iam:::role/short"


def policy(bucket, who, *actions):
    return json.dumps(
        {
            "Version": "2012-10-17",
            "Statement": [
                {
                    "Effect": "Allow",
                    "Principal": who if who == "*" else {"AWS": [who]},
                    "Action": list(actions),
                    "Resource": [f"arn:aws:s3:::{bucket}", f"arn:aws:s3:::{bucket}/*"],
                }
            ],
        }
    )


def client(service, port, key, secret, **config):
    import botocore.session
    from botocore.config import Config

    return botocore.session.get_session().create_client(
        service,
        endpoint_url=f"http://127.0.0.1:{port}",
        region_name="us-east-1",
        aws_access_key_id=key,
        aws_secret_access_key=secret,
        config=Config(s3={"addressing_style": "path"}, parameter_validation=False, max_pool_connections=16, **config),
    )


class Server:
    tls_port, certificate = 0, "-"

    def make_buckets(self):
        for bucket in ("bkt", "dotted.bkt", "open", "reader", "payer"):
            self.s3.create_bucket(Bucket=bucket)
        self.s3.put_bucket_policy(Bucket="open", Policy=policy("open", "*", "s3:GetObject", "s3:ListBucket"))

    def put(self, bucket, key, body):
        self.s3.put_object(Bucket=bucket, Key=bytes.fromhex(key).decode(), Body=bytes.fromhex(body))
        return "ok"

    def fill(self, bucket, prefix, n):
        def one(i):
            self.s3.put_object(Bucket=bucket, Key=bytes.fromhex(prefix).decode() + f"{i:05d}", Body=b"x")

        with ThreadPoolExecutor(8) as pool:
            list(pool.map(one, range(int(n))))
        return "ok"

    def folder(self, bucket, prefix, directory):
        top = pathlib.Path(bytes.fromhex(directory).decode())
        for path in top.rglob("*"):
            if path.is_file():
                key = bytes.fromhex(prefix).decode() + path.relative_to(top).as_posix()
                self.s3.put_object(Bucket=bucket, Key=key, Body=path.read_bytes())
        return "ok"

    def presign(self, bucket, key):
        signer = client("s3", self.port, self.key, self.secret, signature_version="s3v4")
        params = {"Bucket": bucket, "Key": bytes.fromhex(key).decode()}
        return signer.generate_presigned_url("get_object", Params=params, ExpiresIn=600)


class Rgw(Server):
    key, secret = ID, SECRET

    def start(self):
        self.gateway = g = rgw.Gateway()
        g.start()
        self.port, self.tls_port, self.certificate = g.port, g.tls_port, g.certificate
        g.admin("user", "create", "--uid=test", "--display-name=test", f"--access-key={ID}", f"--secret-key={SECRET}")
        access, secret = (f"--access-key={READER[0]}", f"--secret-key={READER[1]}")
        g.admin("user", "create", "--uid=reader", "--display-name=reader", access, secret)
        self.s3 = client("s3", self.port, ID, SECRET)
        self.make_buckets()
        who = "arn:aws:iam:::user/reader"
        for bucket in ("reader", "payer"):
            self.s3.put_bucket_policy(Bucket=bucket, Policy=policy(bucket, who, "s3:GetObject"))
        self.s3.put_bucket_request_payment(Bucket="payer", RequestPaymentConfiguration={"Payer": "Requester"})

    def token(self, seconds):
        """Temporary keys; the role is made with the first."""
        if not hasattr(self, "sts"):
            trust = {
                "Version": "2012-10-17",
                "Statement": [
                    {
                        "Effect": "Allow",
                        "Principal": {"AWS": ["arn:aws:iam:::user/test"]},
                        "Action": ["sts:AssumeRole"],
                    }
                ],
            }
            name = ("--role-name=short",)
            self.gateway.admin("caps", "add", "--uid=test", "--caps=roles=*")
            self.gateway.admin("role", "create", *name, "--path=/", f"--assume-role-policy-doc={json.dumps(trust)}")
            self.allow_all("short")
            self.sts = client("sts", self.port, ID, SECRET)
        c = self.sts.assume_role(RoleArn=ROLE, RoleSessionName="test", DurationSeconds=int(seconds))["Credentials"]
        return f"{c['AccessKeyId']} {c['SecretAccessKey']} {c['SessionToken']}"

    def web_role(self, issuer, audience, thumbprint):
        """A role for who has a token of the issuer; its ARN."""
        self.gateway.admin("caps", "add", "--uid=test", "--caps=oidc-provider=*;roles=*")
        iam = client("iam", self.port, ID, SECRET)
        iam.create_open_id_connect_provider(Url=issuer, ClientIDList=[audience], ThumbprintList=[thumbprint])
        name = issuer.split("://")[1]
        trust = {
            "Effect": "Allow",
            "Principal": {"Federated": [f"arn:aws:iam:::oidc-provider/{name}"]},
            "Action": ["sts:AssumeRoleWithWebIdentity"],
            "Condition": {"StringEquals": {f"{name}:app_id": audience}},
        }
        document = json.dumps({"Version": "2012-10-17", "Statement": [trust]})
        self.gateway.admin("role", "create", "--role-name=web", "--path=/", f"--assume-role-policy-doc={document}")
        self.allow_all("web")
        return "arn:aws:iam:::role/web"

    def allow_all(self, role):
        allow = {"Effect": "Allow", "Action": ["s3:*"], "Resource": "arn:aws:s3:::*"}
        document = json.dumps({"Version": "2012-10-17", "Statement": [allow]})
        self.gateway.admin("role-policy", "put", f"--role-name={role}", "--policy-name=p", f"--policy-doc={document}")

    def throttle(self, most):
        self.gateway.throttle(int(most))
        return "ok"

    def stop(self):
        self.gateway.stop()


class Moto(Server):
    """Signatures are checked once the buckets are there (INITIAL_NO_AUTH_ACTION_COUNT)."""

    def start(self):
        os.environ["INITIAL_NO_AUTH_ACTION_COUNT"] = "10000"
        import logging

        logging.getLogger("werkzeug").setLevel(logging.ERROR)
        from moto.server import ThreadedMotoServer

        self.port = rgw.free_port()
        self.server = ThreadedMotoServer(ip_address="127.0.0.1", port=self.port, verbose=False)
        self.server.start()
        iam = client("iam", self.port, "any", "any")
        iam.create_user(UserName="test")
        allow = {"Effect": "Allow", "Action": ["s3:*", "sts:*"], "Resource": "*"}
        document = json.dumps({"Version": "2012-10-17", "Statement": [allow]})
        user = iam.get_user(UserName="test")["User"]["Arn"]
        trust = {"Effect": "Allow", "Principal": {"AWS": user}, "Action": "sts:AssumeRole"}
        trust = json.dumps({"Version": "2012-10-17", "Statement": [trust]})
        iam.put_user_policy(UserName="test", PolicyName="p", PolicyDocument=document)
        self.role = iam.create_role(RoleName="reader", AssumeRolePolicyDocument=trust)["Role"]["Arn"]
        iam.put_role_policy(RoleName="reader", PolicyName="p", PolicyDocument=document)
        made = iam.create_access_key(UserName="test")["AccessKey"]
        self.key, self.secret = made["AccessKeyId"], made["SecretAccessKey"]
        self.s3 = client("s3", self.port, self.key, self.secret)
        self.make_buckets()
        self.check_signatures(True)

    def check_signatures(self, wanted):
        url, count = f"http://127.0.0.1:{self.port}/moto-api/reset-auth", b"0" if wanted else b"1000000"
        urllib.request.urlopen(urllib.request.Request(url, count, {"Content-Type": "text/plain"}))

    def stop(self):
        self.server.stop()


def why_not(kind):
    try:
        import botocore  # noqa: F401

        if kind == "moto":
            import moto.server  # noqa: F401
    except ImportError as e:
        return f"{e.name} is not installed"
    return rgw.missing() if kind == "rgw" else None


def main():
    kind = sys.argv[1]
    if reason := why_not(kind):
        print(f"skip {reason}", flush=True)
        return
    server = Rgw() if kind == "rgw" else Moto()
    try:
        server.start()
        fields = (server.port, server.tls_port, server.certificate, server.key, server.secret)
        print(*fields, flush=True)
        for line in sys.stdin:
            name, *arguments = line.split()
            print(getattr(server, name)(*arguments), flush=True)
    finally:
        server.stop()


if __name__ == "__main__":
    main()

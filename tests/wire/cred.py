#!/usr/bin/env python3
"""Who wins in the chain of AWS credentials, what is asked of whom, what errors say; the same asked of botocore.

    cred.py PROGRAM          PROGRAM is cred_show of the build

Each case is an environment with files of ~/.aws, and what must come of it against the services of cred_server.py: an
access key (which says who gave it), or an error with certain words. botocore, where it is installed, must come to the
same credential, or refuse as well; where the two differ on purpose the case says why. Prints TAP.
"""

from __future__ import annotations

import datetime
import hashlib
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
import cred_server

HOME = Path(tempfile.mkdtemp(prefix="headrace-cred-"))
os.environ["HOME"] = str(HOME)  # botocore takes it when it is imported
BASE = {k: v for k, v in os.environ.items() if not k.startswith(("AWS_", "BOTO")) and not k.lower().endswith("_proxy")}
try:
    import botocore.session
except ImportError:
    botocore = None

server = cred_server.serve()
URL = f"http://127.0.0.1:{server.server_port}"
STS = {"AWS_ENDPOINT_URL_STS": f"{URL}/sts/"}
SECRETS = (
    *cred_server.KEYS.values(),
    cred_server.TOKEN,
    cred_server.WEB_TOKEN,
    cred_server.SSO_TOKEN,
    "secret/of",
    "token/of",
    "token-of",
)
ENV_KEYS = {"AWS_ACCESS_KEY_ID": "AKIAENV", "AWS_SECRET_ACCESS_KEY": "env/secret+1"}
FILE = "[default]\naws_access_key_id = AKIAFILE\naws_secret_access_key = file/secret+1\n"
IMDS = {"AWS_EC2_METADATA_SERVICE_ENDPOINT": f"{URL}/imds"}
CONTAINER = {"AWS_CONTAINER_CREDENTIALS_FULL_URI": f"{URL}/open/creds"}
WEB = {"AWS_WEB_IDENTITY_TOKEN_FILE": f"{HOME}/web", "AWS_ROLE_ARN": "arn:aws:iam::1:role/web", **STS}
ARN = "arn:aws:iam::1:role/"

cases: list[dict] = []


def case(
    name,
    env=None,
    *,
    key="",
    error="",
    config="",
    credentials="",
    files=None,
    profile="",
    region="",
    differs="",
    token=...,
    after=None,
):
    cases.append(
        {
            "name": name, "env": env or {}, "key": key, "error": error, "config": config, "credentials": credentials,
            "files": files or {}, "profile": profile, "region": region, "differs": differs, "token": token, "after": after,
        }
    )  # fmt: skip


# ---- environment ---------------------------------------------------------------------------------------------------
case("environment", ENV_KEYS, key="AKIAENV", token="")
case("environment with a session token", {**ENV_KEYS, "AWS_SESSION_TOKEN": "t/+="}, key="AKIAENV", token="t/+=")
case("environment with an end", {**ENV_KEYS, "AWS_CREDENTIAL_EXPIRATION": "2099-01-02T03:04:05Z"}, key="AKIAENV")
case(
    "environment before files, container and instance",
    {**ENV_KEYS, **CONTAINER, **IMDS},
    credentials=FILE,
    key="AKIAENV",
)
case("environment before AWS_PROFILE", {**ENV_KEYS, "AWS_PROFILE": "default"}, credentials=FILE, key="AKIAENV")
case("an explicit profile before the environment", ENV_KEYS, credentials=FILE, profile="default", key="AKIAFILE")
case(
    "half a key in the environment",
    {"AWS_ACCESS_KEY_ID": "AKIAENV"},
    credentials=FILE,
    error="not AWS_SECRET_ACCESS_KEY",
)
case(
    "empty variables are not set",
    {"AWS_ACCESS_KEY_ID": "", "AWS_PROFILE": ""},
    credentials=FILE,
    key="AKIAFILE",
    differs="botocore looks for a profile without a name",
)
case(
    "an end that is past", {**ENV_KEYS, "AWS_CREDENTIAL_EXPIRATION": "2001-01-02T03:04:05Z"}, error="they have expired"
)

# ---- files ---------------------------------------------------------------------------------------------------------
case("credentials file", credentials=FILE, key="AKIAFILE", token="")
case("config file", config=FILE, key="AKIAFILE")
case(
    "credentials file before config file",
    credentials=FILE,
    config=FILE.replace("AKIAFILE", "AKIAOTHER"),
    key="AKIAFILE",
)
case("AWS_PROFILE", {"AWS_PROFILE": "dev"}, credentials=FILE.replace("default", "dev"), key="AKIAFILE")
case(
    "AWS_DEFAULT_PROFILE", {"AWS_DEFAULT_PROFILE": "dev"}, config=FILE.replace("default", "profile dev"), key="AKIAFILE"
)
case("a profile's quoted name", profile="my dev", config=FILE.replace("default", 'profile "my dev"'), key="AKIAFILE")
case("session tokens in files", credentials=FILE + "aws_session_token = a=b/c\n", key="AKIAFILE", token="a=b/c")
case("other places", {"AWS_SHARED_CREDENTIALS_FILE": "~/elsewhere"}, files={"elsewhere": FILE}, key="AKIAFILE")
case("another config file", {"AWS_CONFIG_FILE": f"{HOME}/elsewhere"}, files={"elsewhere": FILE}, key="AKIAFILE")
case("no such profile", profile="nope", credentials=FILE, error='"nope" is neither in')
case("no such AWS_PROFILE", {"AWS_PROFILE": "nope", **IMDS}, credentials=FILE, error='"nope" is neither in')
case("half a key in a file", credentials="[default]\naws_access_key_id = A\n", error="has an aws_access_key_id but no")
case(
    "a broken file", credentials="[default]\naws_access_key_id\nhush\n", error="credentials: line 2: neither a section"
)
case("a profile with nothing", IMDS, config="[default]\nregion = eu-west-3\n", key="ASIAIMDS")

# ---- roles ---------------------------------------------------------------------------------------------------------
ROLE = f"[default]\nrole_arn = {ARN}r1\nsource_profile = base\nregion = eu-west-3\n"
KEYS = FILE.replace("default", "base")
case("a role", STS, config=ROLE, credentials=KEYS, key="ASIAr1-AKIAFILE-eu-west-3--")
case(
    "a role before keys of the same profile",
    STS,
    config=ROLE,
    credentials=KEYS + FILE,
    key="ASIAr1-AKIAFILE-eu-west-3--",
)
case(
    "AWS_DEFAULT_REGION before the profile's",
    {**STS, "AWS_DEFAULT_REGION": "us-west-1"},
    config=ROLE,
    credentials=KEYS,
    key="ASIAr1-AKIAFILE-us-west-1--",
)
case(
    "a given region before all",
    {**STS, "AWS_DEFAULT_REGION": "us-west-1"},
    config=ROLE,
    credentials=KEYS,
    region="eu-north-1",
    key="ASIAr1-AKIAFILE-eu-north-1--",
)
case("external id, duration, session", STS, config=ROLE + "external_id = x/y z\nduration_seconds = 900\nrole_session_name = me\n",
     credentials=KEYS, key="ASIAr1-AKIAFILE-eu-west-3-x/y z-900-me")  # fmt: skip
case("a role of a role of a role", STS, credentials=KEYS, key="ASIAr1-ASIAr2-ASIAr3-AKIAFILE-eu-west-3---eu-west-3---eu-west-3--",
     config=ROLE.replace("base", "two") + f"[profile two]\nrole_arn={ARN}r2\nsource_profile=three\n[profile three]\nrole_arn={ARN}r3\nsource_profile=base\n")  # fmt: skip
case("roles in a circle", STS, config=ROLE.replace("base", "two") + f"[profile two]\nrole_arn={ARN}r2\nsource_profile=default\n",
     error='source_profile runs in a circle: "two" <- "default" <- "default"')  # fmt: skip
case(
    "a role that is its own source without keys", STS, config=ROLE.replace("base", "default"), error="runs in a circle"
)
case(
    "a role that is its own source with keys",
    STS,
    config=ROLE.replace("base", "default"),
    credentials=FILE,
    key="ASIAr1-AKIAFILE-eu-west-3--",
)
case("keys in the middle end a chain", STS, credentials=FILE.replace("default", "two"), key="ASIAr1-AKIAFILE-eu-west-3--",
     config=ROLE.replace("base", "two") + f"[profile two]\nrole_arn={ARN}r2\nsource_profile=base\n")  # fmt: skip
case("no such source_profile", STS, config=ROLE, error='its source_profile "base" does not exist')
case(
    "a source_profile with nothing",
    STS,
    config=ROLE + "[profile base]\nregion = x\n",
    error='its source_profile "base" has no credentials',
)
case(
    "neither source",
    STS,
    config=f"[default]\nrole_arn = {ARN}r1\n",
    error="neither source_profile nor credential_source",
)
case(
    "both sources",
    STS,
    config=ROLE + "credential_source = Environment\n",
    credentials=KEYS,
    error="both source_profile and credential_source",
)
SOURCE = f"[profile x]\nrole_arn = {ARN}r1\nregion = eu-west-3\ncredential_source = "
case(
    "credential_source Environment",
    {**STS, **ENV_KEYS},
    profile="x",
    config=SOURCE + "Environment\n",
    key="ASIAr1-AKIAENV-eu-west-3--",
)
case(
    "credential_source EcsContainer",
    {**STS, **CONTAINER},
    profile="x",
    config=SOURCE + "EcsContainer\n",
    key="ASIAr1-ASIACONTAINER-eu-west-3--",
)
case(
    "credential_source Ec2InstanceMetadata",
    {**STS, **IMDS},
    profile="x",
    config=SOURCE + "Ec2InstanceMetadata\n",
    key="ASIAr1-ASIAIMDS-eu-west-3--",
)
case(
    "credential_source that has none",
    STS,
    profile="x",
    config=SOURCE + "Environment\n",
    error="AWS_ACCESS_KEY_ID is not set",
)
case("credential_source unknown", STS, profile="x", config=SOURCE + "Elsewhere\n", error='"Elsewhere" is not one of')
case(
    "a role that is refused",
    STS,
    config=ROLE.replace("r1", "deny"),
    credentials=KEYS,
    error="AccessDenied: User is not authorized to perform: sts:AssumeRole on deny & more",
)
case(
    "a wrong secret", STS, config=ROLE, credentials=KEYS.replace("secret+1", "secret+2"), error="SignatureDoesNotMatch"
)
case(
    "an MFA device",
    STS,
    config=ROLE + "mfa_serial = arn:x\n",
    credentials=KEYS,
    error="wants an MFA code",
    differs="botocore would ask on the terminal",
)
case(
    "STS by AWS_ENDPOINT_URL",
    {"AWS_ENDPOINT_URL": f"{URL}/sts"},
    config=ROLE,
    credentials=KEYS,
    key="ASIAr1-AKIAFILE-eu-west-3--",
)
case(
    "STS by a services section",
    config=ROLE + f"services = here\n[services here]\nsts =\n  endpoint_url = {URL}/sts\n",
    credentials=KEYS,
    key="ASIAr1-AKIAFILE-eu-west-3--",
)
case(
    "STS by the profile's endpoint_url",
    config=ROLE + f"endpoint_url = {URL}/sts\n",
    credentials=KEYS,
    key="ASIAr1-AKIAFILE-eu-west-3--",
)
case(
    "STS that fails at first",
    {"AWS_ENDPOINT_URL_STS": f"{URL}/nth2/sts/"},
    config=ROLE,
    credentials=KEYS,
    key="ASIAr1-AKIAFILE-eu-west-3--",
)
case(
    "a role of a process",
    STS,
    config=ROLE + f"[profile base]\ncredential_process = {HOME}/prog ok\n",
    files={"prog": "x"},
    key="ASIAr1-AKIAPROCESS-eu-west-3--",
)

# ---- web identity ----------------------------------------------------------------------------------------------------
TOKEN_FILE = {"web": cred_server.WEB_TOKEN}
case("web identity", WEB, files=TOKEN_FILE, key="ASIAWEB-web")
case("web identity with a session name", {**WEB, "AWS_ROLE_SESSION_NAME": "me"}, files=TOKEN_FILE, key="ASIAWEB-web-me")
case("web identity before keys in files", WEB, files=TOKEN_FILE, credentials=FILE, key="ASIAWEB-web")
case(
    "web identity after the profile's role",
    WEB,
    files=TOKEN_FILE,
    config=ROLE,
    credentials=KEYS,
    key="ASIAr1-AKIAFILE-eu-west-3--",
)
case(
    "web identity of the profile",
    STS,
    files=TOKEN_FILE,
    config=f"[default]\nrole_arn = {ARN}w2\nweb_identity_token_file = {HOME}/web\n",
    key="ASIAWEB-w2",
)
case("web identity as the source of a role", STS, files=TOKEN_FILE, key="ASIAr1-ASIAWEB-w2-eu-west-3--",
     config=ROLE + f"[profile base]\nrole_arn = {ARN}w2\nweb_identity_token_file = {HOME}/web\n")  # fmt: skip
case(
    "the environment's web identity is no explicit profile's",
    {**WEB, **IMDS},
    files=TOKEN_FILE,
    profile="default",
    config="[default]\nregion=x-1\n",
    key="ASIAIMDS",
)
case(
    "a token that ends with a line break",
    WEB,
    files={"web": cred_server.WEB_TOKEN + "\n"},
    key="ASIAWEB-web",
    differs="botocore sends the break",
)
case("no token file", WEB, error="the web identity token")
case(
    "no role for the token",
    {**STS, "AWS_WEB_IDENTITY_TOKEN_FILE": f"{HOME}/web"},
    files=TOKEN_FILE,
    error="neither AWS_ROLE_ARN nor role_arn",
)
case("a token that is refused", WEB, files={"web": "other"}, error="InvalidIdentityToken")

# ---- single sign-on --------------------------------------------------------------------------------------------------
SSO_ENV = {"AWS_ENDPOINT_URL_SSO": f"{URL}/sso/..".replace("/sso/..", "/sso")}
SSO = "[default]\nsso_session = corp\nsso_account_id = 12\nsso_role_name = reader\n[sso-session corp]\nsso_start_url = https://corp/start\nsso_region = eu-west-3\n"
OLD_SSO = "[default]\nsso_account_id = 12\nsso_role_name = reader\nsso_start_url = https://corp/start\nsso_region = eu-west-3\n"


def cache(name, until=3600, **more):
    end = datetime.datetime.fromtimestamp(time.time() + until, datetime.UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    token = {
        "accessToken": cred_server.SSO_TOKEN,
        "expiresAt": end,
        "startUrl": "https://corp/start",
        "region": "eu-west-3",
        **more,
    }
    return {f".aws/sso/cache/{hashlib.sha1(name.encode()).hexdigest()}.json": json.dumps(token)}


case("single sign-on", SSO_ENV, config=SSO, files=cache("corp"), key="ASIASSO-reader-12")
case("single sign-on, old form", SSO_ENV, config=OLD_SSO, files=cache("https://corp/start"), key="ASIASSO-reader-12")
case(
    "old form, old way of writing the end",
    SSO_ENV,
    config=OLD_SSO,
    files=cache("https://corp/start", expiresAt="2099-01-01T00:00:00UTC"),
    key="ASIASSO-reader-12",
)
case("single sign-on before keys", SSO_ENV, config=SSO, credentials=FILE, files=cache("corp"), key="ASIASSO-reader-12")
case(
    "single sign-on as the source of a role",
    {**STS, **SSO_ENV},
    config=SSO.replace("default", "profile base") + ROLE,
    files=cache("corp"),
    key="ASIAr1-ASIASSO-reader-12-eu-west-3--",
)
case(
    "a sign-on token that has expired",
    SSO_ENV,
    config=SSO,
    files=cache("corp", -60),
    error="expired; run: aws sso login --profile default",
)
case(
    "old form, expired",
    SSO_ENV,
    config=OLD_SSO,
    files=cache("https://corp/start", -60),
    error="expired; run: aws sso login --profile default",
)
RENEW = {**SSO_ENV, "AWS_ENDPOINT_URL_SSO_OIDC": f"{URL}/oidc"}


def renewable(number, until=-60, registered=3600, **more):
    end = datetime.datetime.fromtimestamp(time.time() + registered, datetime.UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    own = {"clientId": cred_server.SSO_CLIENT, "clientSecret": cred_server.SSO_SECRET, "registrationExpiresAt": end}
    return cache("corp", until, **own, accessToken="old", refreshToken=f"refresh/token+{number}", **more)


def renewed(home):
    """The file has the next refresh token, which is good for one use, and what it had besides."""
    (path,) = (home / ".aws/sso/cache").iterdir()
    token = json.loads(path.read_text())
    if path.stat().st_mode & 0o77 or token["accessToken"] != cred_server.SSO_TOKEN:
        return f"{path.stat().st_mode:o} {token}"
    kept = token["clientId"] == cred_server.SSO_CLIENT and token["startUrl"] == "https://corp/start"
    left = datetime.datetime.fromisoformat(token["expiresAt"]).timestamp() - time.time()
    return "" if kept and token["refreshToken"].endswith("+") and 3500 < left < 3700 else str(token)


case(
    "an expired sign-on token is renewed", RENEW, config=SSO, files=renewable(1), key="ASIASSO-reader-12", after=renewed
)
case(
    "a sign-on token is renewed ahead of its end",
    RENEW, config=SSO, files=renewable(2, 600), key="ASIASSO-reader-12", after=renewed,
)  # fmt: skip
case(
    "a sign-on token that cannot be renewed serves to its end",
    RENEW, config=SSO, files=renewable(9, 600) | cache("corp", 600, refreshToken="refresh/token+9"), key="ASIASSO-reader-12",
)  # fmt: skip
case(
    "a refresh token that is refused",
    RENEW, config=SSO, files=renewable(9), error="could not be renewed (",
)  # fmt: skip
case(
    "a registration that is over",
    RENEW, config=SSO, files=renewable(3, registered=-60), error="expired; run: aws sso login --profile default",
)  # fmt: skip
case(
    "a sign-on token that is refused",
    SSO_ENV,
    config=SSO,
    files=cache("corp", accessToken="x"),
    error="no longer accepted; run: aws sso login",
)
case("no sign-on token", SSO_ENV, config=SSO, error="there is no single sign-on token; run: aws sso login")
case(
    "no such sso-session",
    SSO_ENV,
    config=SSO.replace("[sso-session corp]", "[sso-session other]"),
    files=cache("corp"),
    error="no [sso-session corp]",
)
case(
    "half a sign-on setup",
    SSO_ENV,
    config=OLD_SSO.replace("sso_region", "region"),
    files=cache("https://corp/start"),
    error="has no sso_region",
)

# ---- credential_process ------------------------------------------------------------------------------------------------
PROGRAM = """#!/bin/sh
case "$1" in
ok) echo '{"Version": 1, "AccessKeyId": "AKIAPROCESS", "SecretAccessKey": "process/secret+1"}' ;;
session) echo '{"Version": 1, "AccessKeyId": "AKIAPROCESS", "SecretAccessKey": "process/secret+1", "SessionToken": "t=", "Expiration": "2099-01-02T03:04:05+01:00"}' ;;
"a b") echo '{"Version": 1, "AccessKeyId": "'"$2:$HINT:$#"'", "SecretAccessKey": "process/secret+1"}' ;;
version) echo '{"Version": 2, "AccessKeyId": "AKIAPROCESS", "SecretAccessKey": "process/secret+1"}' ;;
half) echo '{"Version": 1, "AccessKeyId": "AKIAPROCESS"}' ;;
garbage) echo 'hush process/secret+1' ;;
fails) echo first >&2; echo 'log in at the portal' >&2; exit 3 ;;
killed) kill -9 $$ ;;
daemon) sleep 30 & echo '{"Version": 1, "AccessKeyId": "AKIAPROCESS", "SecretAccessKey": "process/secret+1"}' ;;
large) head -c 100000 /dev/zero | tr '\\0' x >&2; echo '{"Version": 1, "AccessKeyId": "AKIAPROCESS", "SecretAccessKey": "process/secret+1"}' ;;
stdin) read -r x; echo '{"Version": 1, "AccessKeyId": "AKIAPROCESS", "SecretAccessKey": "process/secret+1"}' ;;
esac
"""


def process(line):
    return f"[default]\ncredential_process = {line}\n"


PROG = {"prog": PROGRAM}
case("a process", config=process(f"{HOME}/prog ok"), files=PROG, key="AKIAPROCESS", token="")
case("a process with token and end", config=process(f"{HOME}/prog session"), files=PROG, key="AKIAPROCESS", token="t=")
case(
    "words as a shell has them, no expansion",
    {"HINT": "h"},
    config=process(f"{HOME}/prog 'a b' \"$HOME;\"x\\ y z"),
    files=PROG,
    key="$HOME;x y:h:3",
)
case(
    "a program in PATH",
    {"PATH": f"/nowhere:{HOME}:{os.environ['PATH']}"},
    config=process("prog ok"),
    files=PROG,
    key="AKIAPROCESS",
)
case("a process in the credentials file", credentials=process(f"{HOME}/prog ok"), files=PROG, key="AKIAPROCESS")
case(
    "keys in the credentials file before a process",
    config=process(f"{HOME}/prog ok"),
    credentials=FILE,
    files=PROG,
    key="AKIAFILE",
)
case(
    "a process before keys in the config file",
    config=process(f"{HOME}/prog ok") + FILE.split("\n", 1)[1],
    files=PROG,
    key="AKIAPROCESS",
)
case("another version", config=process(f"{HOME}/prog version"), files=PROG, error='"Version" must be 1')
case("a process that prints half", config=process(f"{HOME}/prog half"), files=PROG, error='no "SecretAccessKey"')
case(
    "a process that prints something else",
    config=process(f"{HOME}/prog garbage"),
    files=PROG,
    error="what credential_process printed",
)
case(
    "a process that fails says why",
    config=process(f"{HOME}/prog fails"),
    files=PROG,
    error="prog ended with status 3: log in at the portal",
)
case("a process that is killed", config=process(f"{HOME}/prog killed"), files=PROG, error="ended by signal 9")
case(
    "a process that leaves another behind",
    config=process(f"{HOME}/prog daemon"),
    files=PROG,
    key="AKIAPROCESS",
    differs="botocore waits for both",
)
case("a process that complains at length", config=process(f"{HOME}/prog large"), files=PROG, key="AKIAPROCESS")
case(
    "a process that asks",
    config=process(f"{HOME}/prog stdin"),
    files=PROG,
    key="AKIAPROCESS",
    differs="botocore lets it read the terminal",
)
case(
    "no such program",
    config=process("headrace-no-such-program ok"),
    error='no program "headrace-no-such-program" in PATH',
)
case("a program that cannot be run", config=process(f"{HOME}/text ok"), files={"text": ""}, error="text: ")
case("a quote that stays open", config=process(f"{HOME}/prog 'ok"), files=PROG, error="not closed")

case(
    "a profile of aws login",
    config="[default]\nlogin_session = arn:aws:iam::1:user/me\n",
    error="credential_process = aws configure export-credentials --profile default",
    differs="botocore reads its sessions",
)
case(
    "a region that is none",
    config=ROLE.replace("eu-west-3", "x.evil.test/"),
    credentials=KEYS,
    error="is no name of a region",
)

# ---- container ---------------------------------------------------------------------------------------------------------
case("container", CONTAINER, key="ASIACONTAINER")
case("container before the instance", {**CONTAINER, **IMDS}, key="ASIACONTAINER")
LOCKED = {"AWS_CONTAINER_CREDENTIALS_FULL_URI": f"{URL}/container/creds"}
case("container with a token", {**LOCKED, "AWS_CONTAINER_AUTHORIZATION_TOKEN": cred_server.TOKEN}, key="ASIACONTAINER")
case(
    "pod identity: a token in a file",
    {**LOCKED, "AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE": f"{HOME}/pod"},
    files={"pod": cred_server.TOKEN},
    key="ASIACONTAINER",
)
case("the file before the variable", {**LOCKED, "AWS_CONTAINER_AUTHORIZATION_TOKEN": "x", "AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE": f"{HOME}/pod"},
     files={"pod": cred_server.TOKEN}, key="ASIACONTAINER")  # fmt: skip
case("a pod's token with a line break", {**LOCKED, "AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE": f"{HOME}/pod"}, files={"pod": cred_server.TOKEN + "\n"},
     key="ASIACONTAINER", differs="botocore refuses it")  # fmt: skip
case(
    "a token of two lines", {**LOCKED, "AWS_CONTAINER_AUTHORIZATION_TOKEN": "a\nX-Other: b"}, error="more than one line"
)
case(
    "no token file of a pod",
    {**LOCKED, "AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE": f"{HOME}/pod"},
    error="AUTHORIZATION_TOKEN_FILE",
)
case("container that refuses", LOCKED, error="status 401")
case(
    "localhost",
    {
        "AWS_CONTAINER_CREDENTIALS_FULL_URI": CONTAINER["AWS_CONTAINER_CREDENTIALS_FULL_URI"].replace(
            "127.0.0.1", "localhost"
        )
    },
    key="ASIACONTAINER",
)
for n, foreign in enumerate(
    (
        "http://10.1.2.3/x",
        "http://169.254.170.3/x",
        "http://localhost.example.com/",
        "http://127.0.0.1@10.1.2.3/",
        "http://[fd00:ec2::24]/",
        "ftp://127.0.0.1/",
    )
):
    case(
        f"plain http to others {n + 1}",
        {"AWS_CONTAINER_CREDENTIALS_FULL_URI": foreign},
        error="over plain http only this machine",
    )

# ---- instance ----------------------------------------------------------------------------------------------------------
case("instance", IMDS, key="ASIAIMDS")
case("instance by the profile", config=f"[default]\nec2_metadata_service_endpoint = {URL}/imds/\n", key="ASIAIMDS")
case(
    "no proxy for an instance", {**IMDS, "http_proxy": "http://127.0.0.1:9"}, key="ASIAIMDS", differs="botocore uses it"
)
case(
    "a proxy for STS",
    {**STS, "http_proxy": "http://127.0.0.1:9"},
    config=ROLE,
    credentials=KEYS,
    error="127.0.0.1 port 9",
)
case("instance without tokens", {"AWS_EC2_METADATA_SERVICE_ENDPOINT": f"{URL}/imds1"}, key="ASIAIMDS1")
case(
    "… which may be forbidden",
    {"AWS_EC2_METADATA_SERVICE_ENDPOINT": f"{URL}/imds1", "AWS_EC2_METADATA_V1_DISABLED": "true"},
    error="version 1 is disabled",
)
case("instance without a role", {"AWS_EC2_METADATA_SERVICE_ENDPOINT": f"{URL}/norole"}, error="no role is attached")
case(
    "instance whose role fails",
    {"AWS_EC2_METADATA_SERVICE_ENDPOINT": f"{URL}/failing"},
    error="AssumeRoleUnauthorizedAccess: EC2 cannot assume",
)
case("instance that gives half", {"AWS_EC2_METADATA_SERVICE_ENDPOINT": f"{URL}/bare"}, error='no "AccessKeyId"')
case(
    "instance that fails at first",
    {"AWS_EC2_METADATA_SERVICE_ENDPOINT": f"{URL}/nth1/imds"},
    key="ASIAIMDS",
    differs="botocore tries once",
)
case(
    "instance that does not answer",
    {"AWS_EC2_METADATA_SERVICE_ENDPOINT": f"{URL}/slow"},
    error="/slow: no answer",
    differs="botocore falls back to version 1",
)
case("nobody there", {"AWS_EC2_METADATA_SERVICE_ENDPOINT": "http://127.0.0.1:9"}, error="http://127.0.0.1:9: no answer")
case(
    "instance that is not to be asked",
    {**IMDS, "AWS_EC2_METADATA_DISABLED": "True"},
    error="AWS_EC2_METADATA_DISABLED is set",
)
case("nothing anywhere", error="no credentials; looked at: environment (AWS_ACCESS_KEY_ID is not set); role of profile default (no role_arn); "
     f"web identity (AWS_WEB_IDENTITY_TOKEN_FILE is not set); profile default (no {HOME}/.aws/config, no {HOME}/.aws/credentials); container")  # fmt: skip


# ---- running -----------------------------------------------------------------------------------------------------------
def set_up(c):
    subprocess.run(["rm", "-rf", *HOME.iterdir()], check=True)
    files = {".aws/config": c["config"], ".aws/credentials": c["credentials"], **c["files"]}
    if "prog" in c["files"]:
        files["prog"] = PROGRAM
    for name, text in files.items():
        if text or name in c["files"]:
            path = HOME / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
    if "prog" in files:
        (HOME / "prog").chmod(0o755)
    cred_server.refresh_tokens |= cred_server.REFRESH_TOKENS
    env = {**BASE, **c["env"], "HOME": str(HOME)}
    if not any(k.startswith("AWS_EC2_METADATA_SERVICE") for k in env) and "ec2_metadata" not in c["config"]:
        env["AWS_EC2_METADATA_DISABLED"] = "true"
    return env


def ours(program, c, env):
    cred_server.seen.clear()
    p = subprocess.run(
        [program, c["profile"], c["region"]], env=env, text=True, capture_output=True, timeout=60, check=False
    )
    lines = p.stdout.split("\n")
    if p.returncode or p.stderr:
        return None, f"exit {p.returncode}: {p.stdout} {p.stderr}"
    if lines[0].startswith("error: "):
        return None, lines[0]
    return (lines[0], lines[1], lines[2], int(lines[3])), ""


def theirs(c, env):
    cred_server.seen.clear()
    os.environ.clear()
    os.environ.update(env)
    try:
        session = botocore.session.Session(profile=c["profile"] or None)
        if c["region"]:
            session.set_config_variable("region", c["region"])
        found = session.get_credentials()
        frozen = found.get_frozen_credentials() if found else None
    except Exception as e:
        return None, f"{type(e).__name__}: {e}"
    if not frozen:
        return None, "none"
    end = getattr(found, "_expiry_time", None)
    return (frozen.access_key, frozen.secret_key, frozen.token or "", int(end.timestamp()) if end else 0), ""


def faults(program, c):
    env = set_up(c)
    got, error = ours(program, c, env)
    if any(s in error for s in SECRETS):
        yield "a secret is in the error"
    if c["key"] and (not got or got[0] != c["key"]):
        yield f"wanted {c['key']}, got {got or error}"
    if c["error"] and (got or c["error"] not in error):
        yield f"wanted an error with {c['error']!r}, got {got or error}"
    if got and c["token"] is not ... and got[2] != c["token"]:
        yield f"wanted token {c['token']!r}, got {got[2]!r}"
    if c["after"] and (fault := c["after"](HOME)):
        yield f"afterwards: {fault}"
    if len(error) > 7 + 511 or (error and not c["error"]):
        yield error
    if botocore and not c["differs"]:
        other, why = theirs(c, set_up(c))
        if c["after"] and (fault := c["after"](HOME)):
            yield f"after botocore: {fault}"
        if bool(got) != bool(other) or (got and (got[:3] != other[:3] or abs(got[3] - other[3]) > 30)):
            yield f"botocore: {other or why}; here: {got or error}"


def main():
    program = sys.argv[1]
    only = sys.argv[2] if len(sys.argv) > 2 else ""
    failed = n = 0
    for c in cases:
        if only not in c["name"]:
            continue
        n += 1
        wrong = list(faults(program, c))
        failed += bool(wrong)
        for w in wrong:
            print(f"# {w}")
        print(f"{'not ok' if wrong else 'ok'} {n} - {c['name'].replace('#', '')}", flush=True)
    if not only:
        n += 1
        print(f"ok {n} - botocore answers the same{'' if botocore else ' # SKIP botocore is not installed'}")
    print(f"1..{n}")
    subprocess.run(["rm", "-rf", HOME], check=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())

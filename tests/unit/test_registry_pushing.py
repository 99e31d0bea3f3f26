"""Pushing by the distribution specification: chunks, faults, refusals, and where credentials never go."""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest

from hermetic.errors import HermeticError, InputError, RegistryRefused, Unreachable
from hermetic.registry.credentials import TOKEN_USER, Credentials, find_credentials, given_credentials
from hermetic.registry.pushing import CHUNK, Blob, Manifest, Repository, referrer_descriptor, with_referrer
from hermetic.registry.transport import ATTEMPTS, LONGEST_WAIT, Challenge, Endpoint, RegistryClient, challenges
from testbed.registry_stand_in import Answer, RegistryStandIn

CONTENT = b"0123456789abcdef" * (5 * CHUNK // 32)  # two and a half chunks
SECRET = "do not show me"
LOGIN = Credentials("pusher", SECRET, "a test")
MANIFEST = Manifest(b'{"schemaVersion":2}', "application/vnd.oci.image.manifest.v1+json", ("0.1.0",))


@pytest.fixture
def registry() -> Iterator[RegistryStandIn]:
    with RegistryStandIn() as registry:
        yield registry


@pytest.fixture
def other() -> Iterator[RegistryStandIn]:
    """Another host of the network: it must never see a login."""
    with RegistryStandIn() as other:
        yield other


def blob(content: bytes = CONTENT) -> Blob:
    digest = f"sha256:{hashlib.sha256(content).hexdigest()}"
    return Blob(digest, len(content), lambda offset, length: content[offset : offset + length])


@contextmanager
def repository(
    registry: RegistryStandIn, login: Credentials | None = LOGIN, token_host: str = ""
) -> Iterator[tuple[Repository, list[float]]]:
    """A repository of the registry, and the pauses that were made."""
    pauses: list[float] = []
    with httpx.Client(trust_env=False) as client:
        endpoint = Endpoint(registry.host, plain_http=True, token_host=token_host)
        yield Repository(RegistryClient(endpoint, login, client, pauses.append), "platform/hermetic"), pauses


def pushed(registry: RegistryStandIn, content: bytes = CONTENT) -> list[float]:
    with repository(registry) as (pushing, pauses):
        assert pushing.push_blob(blob(content))
        assert registry.blobs[blob(content).digest] == content
        assert not pushing.push_blob(blob(content)), "it is there"
    return pauses


def count(registry: RegistryStandIn, method: str) -> int:
    return sum(request[0] == method for request in registry.requests)


@pytest.mark.parametrize("size", [0, 1, CHUNK - 1, CHUNK])
def test_a_small_blob_is_sent_in_one_request(size: int, registry: RegistryStandIn) -> None:
    pushed(registry, b"a" * size)
    assert (count(registry, "POST"), count(registry, "PATCH"), count(registry, "PUT")) == (1, 0, 1)


def test_a_large_blob_is_sent_in_chunks_whose_ranges_follow_each_other(registry: RegistryStandIn) -> None:
    pushed(registry)
    ranges = [headers["Content-Range"] for method, _, headers in registry.requests if method == "PATCH"]
    assert ranges == [f"0-{CHUNK - 1}", f"{CHUNK}-{2 * CHUNK - 1}", f"{2 * CHUNK}-{len(CONTENT) - 1}"]


def test_a_registry_may_ask_for_larger_chunks(registry: RegistryStandIn) -> None:
    location = {"Location": "/v2/platform/hermetic/blobs/uploads/0", "OCI-Chunk-Min-Length": str(2 * CHUNK)}
    registry.fail("POST", Answer(202, location), does_work=True)
    pushed(registry)
    assert count(registry, "PATCH") == 2


# What happens during an upload, after which the blob is there all the same; and how long was waited.
FAULTS = {
    "a chunk that arrived in part": (lambda registry: registry.drop("PATCH", after=1000), [1.0]),
    "a chunk whose answer was lost": (lambda registry: registry.drop("PATCH", does_work=True), [1.0]),
    "a chunk of which nothing arrived": (lambda registry: registry.drop("PATCH"), [1.0]),
    "a busy registry": (lambda registry: registry.fail("PATCH", Answer(503), times=3), [1.0, 2.0, 4.0]),
    "a registry that limits": (lambda registry: registry.fail("PATCH", Answer(429, {"Retry-After": "7"})), [7.0]),
    "one that asks for an hour": (
        lambda registry: registry.fail("POST", Answer(429, {"Retry-After": "3600"})),
        [LONGEST_WAIT],
    ),
    "an upload that is gone": (
        lambda registry: registry.fail("PATCH", Answer(404)),
        [],
    ),
    "an upload that is gone when asked": (
        lambda registry: (registry.drop("PATCH"), registry.fail("GET", Answer(404))),
        [1.0],
    ),
    "a beginning that fails": (lambda registry: registry.fail("POST", Answer(500), times=2), [1.0, 2.0]),
    "a lost answer to the last request": (lambda registry: registry.drop("PUT", does_work=True), [1.0]),
    "a question that fails": (lambda registry: registry.drop("HEAD"), [1.0]),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_an_upload_survives(fault: str, registry: RegistryStandIn) -> None:
    plant, pauses = FAULTS[fault]
    plant(registry)
    assert pushed(registry) == pauses


def test_a_chunk_that_arrived_in_part_is_continued_and_not_sent_again(registry: RegistryStandIn) -> None:
    registry.drop("PATCH", after=1000)
    pushed(registry)
    starts = [headers["Content-Range"].split("-")[0] for method, _, headers in registry.requests if method == "PATCH"]
    assert starts[:2] == ["0", "1000"]


def push_both(pushing: Repository) -> None:
    pushing.push_blob(blob())
    pushing.push_manifest(MANIFEST)


def refused(registry: RegistryStandIn, kind: type[HermeticError] = RegistryRefused) -> HermeticError:
    with repository(registry) as (pushing, _), pytest.raises(kind) as raised:
        push_both(pushing)
    assert SECRET not in f"{raised.value.message} {raised.value.fix}"
    return raised.value


DENIED = (
    b'{"errors": [{"code": "DENIED", "message": "client with IP 10.0.0.4 is not allowed access\\u202e\\u001b[0m"}]}'
)
# The request that is refused, the answer, words of the message, words of the fix
REFUSALS = {
    "no right": ("POST", Answer(403, {}, DENIED), "403 Forbidden: DENIED: client with IP 10.0.0.4", "AcrPush"),
    "no project": ("POST", Answer(404), "404 Not Found", "create the repository or project"),
    "a proxy with a limit": ("PATCH", Answer(413, {}, b"<html>"), "413", "client_max_body_size"),
    "too many requests": ("POST", Answer(429), "429 Too Many Requests", "run the same command again"),
    "a full disk": ("PATCH", Answer(500), "500 Internal Server Error", "full disk"),
    "no storage": ("PATCH", Answer(507), "507 Insufficient Storage", "make space"),
    "a locked tag": ("PUT", Answer(409), "409 Conflict", "unlock the tag"),
    "an unsupported method": ("PATCH", Answer(405), "405 Method Not Allowed", "unlock the tag"),
    "other bytes": (
        "PUT",
        Answer(400, {}, b'{"errors": [{"code": "DIGEST_INVALID", "message": "provided digest did not match"}]}'),
        "400 Bad Request: DIGEST_INVALID: provided digest did not match",
        "verify the file again",
    ),
    "an answer that is no JSON": ("POST", Answer(403, {}, b"{"), "403 Forbidden", "AcrPush"),
    "an answer of another form": ("POST", Answer(403, {}, b'{"errors": ["x"]}'), "403 Forbidden", "AcrPush"),
    "an upload without a place": ("POST", Answer(202), "without a Location", ""),
}


@pytest.mark.parametrize("case", REFUSALS)
def test_a_refusal_names_its_cause_and_what_to_do(case: str, registry: RegistryStandIn) -> None:
    method, answer, message, fix = REFUSALS[case]
    registry.fail(method, answer, times=2 * ATTEMPTS)
    error = refused(registry)
    assert message in error.message
    assert fix in error.fix
    assert error.message.startswith("127.0.0.1:")
    assert error.message.isprintable()


def test_a_registry_that_is_away_is_unreachable(registry: RegistryStandIn) -> None:
    for _ in range(ATTEMPTS):
        registry.drop("HEAD")
    assert "127.0.0.1:" in refused(registry, Unreachable).message
    for _ in range(ATTEMPTS):
        registry.drop("PATCH")
    refused(registry, Unreachable)


def challenge(realm: str) -> Answer:
    """As Azure answers: https://azure.github.io/acr/Token-BasicAuth.html."""
    header = f'Bearer realm="{realm}",service="contoso.azurecr.io",scope="repository:platform/hermetic:pull,push"'
    return Answer(401, {"Www-Authenticate": header})


def redirects(location: str) -> dict[str, tuple[str, Answer]]:
    return {
        "an upload elsewhere": ("POST", Answer(202, {"Location": f"http://{location}/v2/a/blobs/uploads/0"})),
        "an upload elsewhere without a scheme": (
            "POST",
            Answer(202, {"Location": f"//{location}/v2/a/blobs/uploads/0"}),
        ),
        "an upload with a login in its place": (
            "POST",
            Answer(202, {"Location": f"http://127.0.0.1@{location}/v2/a/blobs/uploads/0"}),
        ),
        "a redirect of the beginning": ("POST", Answer(307, {"Location": f"http://{location}/"})),
        "a permanent redirect of the beginning": ("POST", Answer(308, {"Location": f"http://{location}/"})),
        "a redirect of a chunk": ("PATCH", Answer(307, {"Location": f"http://{location}/"})),
        "a redirect of the end": ("PUT", Answer(302, {"Location": f"http://{location}/"})),
        "tokens elsewhere": ("HEAD", challenge(f"http://{location}/oauth2/token")),
        "tokens elsewhere with the registry as a login": (
            "HEAD",
            challenge(f"http://127.0.0.1@{location}/oauth2/token"),
        ),
    }


@pytest.mark.parametrize("case", redirects(""))
def test_credentials_never_go_to_another_host(case: str, registry: RegistryStandIn, other: RegistryStandIn) -> None:
    location = other.host.replace("127.0.0.1", "localhost")
    method, answer = redirects(location)[case]
    if method != "HEAD":
        log_in_by_password(registry)
    registry.fail(method, answer, times=2 * ATTEMPTS)
    error = refused(registry)
    assert other.requests == []
    assert "localhost" in error.message or "login" in case


def log_in_by_password(registry: RegistryStandIn) -> None:
    registry.fail("HEAD", Answer(401, {"WWW-Authenticate": 'Basic realm="a registry"'}))


def test_a_login_by_password_goes_to_the_registry_alone(registry: RegistryStandIn) -> None:
    log_in_by_password(registry)
    pushed(registry)
    basic = "Basic " + base64.b64encode(f"pusher:{SECRET}".encode()).decode()
    authorizations = [headers.get("Authorization", "") for _, _, headers in registry.requests]
    assert authorizations[0] == ""
    assert set(authorizations[1:-1]) == {basic}


def test_a_host_that_issues_tokens_gets_the_login_where_it_is_named(
    registry: RegistryStandIn, other: RegistryStandIn
) -> None:
    token = json.dumps({"token": "issued"}).encode()
    other.fail("GET", Answer(200, {}, token))
    registry.fail("HEAD", challenge(f"http://{other.host.replace('127.0.0.1', 'localhost')}/token"))
    with repository(registry, token_host="localhost") as (pushing, _):
        pushing.push_blob(blob())
    ((_, path, headers),) = other.requests
    assert headers["Authorization"].startswith("Basic ")
    assert "scope=repository%3Aplatform%2Fhermetic%3Apull%2Cpush" in path
    assert registry.requests[-1][2]["Authorization"] == "Bearer issued"


def test_an_expired_token_is_asked_for_anew(registry: RegistryStandIn) -> None:
    for token in ("first", "second"):
        registry.fail("GET", Answer(200, {}, json.dumps({"access_token": token}).encode()), path="/oauth2/token")
    realm = f"http://{registry.host}/oauth2/token"
    registry.fail("HEAD", challenge(realm))
    registry.fail("PATCH", challenge(realm))
    pushed(registry)
    sent = [headers.get("Authorization", "") for method, _, headers in registry.requests if method == "PATCH"]
    assert sent[:2] == ["Bearer first", "Bearer second"]


def test_no_login_is_an_error_that_names_the_command_of_azure(registry: RegistryStandIn) -> None:
    log_in_by_password(registry)
    with repository(registry, login=None) as (pushing, _), pytest.raises(RegistryRefused) as raised:
        pushing.push_blob(blob())
    assert "no credentials for it were found" in raised.value.message


def test_what_the_registry_holds_is_read_back_by_digest_and_tag(registry: RegistryStandIn) -> None:
    with repository(registry) as (pushing, _):
        pushing.push_blob(blob())
        pushing.push_manifest(MANIFEST)
        pushing.verify(MANIFEST, [blob()])
        for reference in (MANIFEST.digest, "0.1.0"):
            key = f"platform/hermetic:{reference}"
            right = registry.manifests[key]
            registry.manifests[key] = right[0], b'{"schemaVersion":2} '
            with pytest.raises(RegistryRefused, match="was pushed"):
                pushing.verify(MANIFEST, [blob()])
            registry.manifests[key] = right
        registry.blobs.clear()
        with pytest.raises(RegistryRefused, match="is missing after the push"):
            pushing.verify(MANIFEST, [blob()])


def test_a_blob_of_another_size_under_its_digest_is_refused(registry: RegistryStandIn) -> None:
    registry.blobs[blob().digest] = b"short"
    assert "has 5 bytes" in refused(registry).message


def test_a_blob_that_the_registry_keeps_elsewhere_is_there(registry: RegistryStandIn, other: RegistryStandIn) -> None:
    registry.fail("HEAD", Answer(307, {"Location": f"http://{other.host}/storage"}))
    with repository(registry) as (pushing, _):
        assert not pushing.push_blob(blob())
    assert other.requests == []


def test_a_tag_that_names_the_manifest_is_not_written_again(registry: RegistryStandIn) -> None:
    with repository(registry) as (pushing, _):
        pushing.push_manifest(MANIFEST)
        written = count(registry, "PUT")
        registry.fail("PUT", Answer(409), times=9)
        pushing.push_manifest(MANIFEST)
    assert count(registry, "PUT") == written == 2


def test_a_list_of_referrers_keeps_the_others_and_has_each_once() -> None:
    first, second = (
        referrer_descriptor(b'{"artifactType":"a/b","annotations":{"c":"d"}}', "m", f"sha256:{digit * 64}")
        for digit in "12"
    )
    index = with_referrer(with_referrer(b"", first), second)
    assert [entry["digest"][7] for entry in json.loads(index)["manifests"]] == ["1", "2"]
    assert json.loads(index)["manifests"][0]["artifactType"] == "a/b"
    assert with_referrer(index, first) == index


CHALLENGES = [
    ('Bearer realm="https://a/t",service="s"', [Challenge("bearer", "https://a/t", "s")]),
    ('Basic realm="a, b"', [Challenge("basic", "a, b")]),
    (
        'basic realm=x, BEARER Realm="https://a" , service=s',
        [Challenge("basic", "x"), Challenge("bearer", "https://a", "s")],
    ),
    ("Negotiate, Basic realm=x", [Challenge("negotiate"), Challenge("basic", "x")]),
    (r'Bearer realm="a\"b"', [Challenge("bearer", 'a"b')]),
    ("", []),
    ('="', []),
]


@pytest.mark.parametrize(("header", "read"), CHALLENGES)
def test_challenges_are_read_as_rfc_9110_writes_them(header: str, read: list[Challenge]) -> None:
    assert challenges([header]) == read


AUTH = base64.b64encode(b"user:secret").decode()
# What the file of docker login holds, and the user, the secret and whether it is a refresh token
CONFIGS = {
    "a login": ({"auths": {"r.example:5000": {"auth": AUTH}}}, ("user", "secret", False)),
    "a login as a URL": ({"auths": {"https://r.example:5000/v2/": {"auth": AUTH}}}, ("user", "secret", False)),
    "an identity token": ({"auths": {"r.example:5000": {"identitytoken": "t"}}}, (TOKEN_USER, "t", True)),
    "a login of Azure": (
        {"auths": {"r.example:5000": {"auth": base64.b64encode(f"{TOKEN_USER}:t".encode()).decode()}}},
        (TOKEN_USER, "t", True),
    ),
    "another host": ({"auths": {"r.example": {"auth": AUTH}}}, None),
    "a host that ends alike": ({"auths": {"other.example:5000": {"auth": AUTH}}}, None),
    "a password with a colon": (
        {"auths": {"r.example:5000": {"auth": base64.b64encode(b"u:a:b").decode()}}},
        ("u", "a:b", False),
    ),
    "no base64": ({"auths": {"r.example:5000": {"auth": "?"}}}, None),
    "nothing": ({}, None),
    "a list": ([], None),
    "a store that has no entry": ({"auths": {}, "credsStore": "desktop"}, None),
}


@pytest.mark.parametrize("case", CONFIGS)
def test_credentials_are_those_of_the_host_in_the_file(case: str, tmp_path: Path) -> None:
    document, expected = CONFIGS[case]
    (tmp_path / "config.json").write_text(json.dumps(document))
    credentials = find_credentials("r.example:5000", {"DOCKER_CONFIG": str(tmp_path)})
    assert (credentials and (credentials.username, credentials.secret, credentials.is_refresh_token)) == expected
    assert "secret" not in repr(credentials)


@pytest.mark.parametrize(
    "document", [{"credHelpers": {"r.example": "acr"}}, {"auths": {"r.example": {}}, "credsStore": "acr"}]
)
def test_a_program_that_keeps_credentials_is_named_and_not_run(document: object, tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text(json.dumps(document))
    with pytest.raises(InputError, match="'acr' keeps the credentials") as raised:
        find_credentials("r.example", {"DOCKER_CONFIG": str(tmp_path)})
    assert "--password-stdin" in raised.value.fix


def test_the_environment_comes_before_files_and_a_token_needs_no_user(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text("{")
    credentials = find_credentials("r.example", {"DOCKER_CONFIG": str(tmp_path), "HERMETIC_REGISTRY_PASSWORD": "t"})
    assert credentials is not None
    assert (credentials.username, credentials.is_refresh_token) == (TOKEN_USER, True)
    assert not given_credentials("user", "p", "x").is_refresh_token
    with pytest.raises(InputError, match="is not JSON"):
        find_credentials("r.example", {"DOCKER_CONFIG": str(tmp_path)})

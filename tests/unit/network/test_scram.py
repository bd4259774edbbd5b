"""The client's side of SCRAM: the example of the RFC, and servers that cannot be trusted."""

import base64

import pytest

from twinlog.network.scram import SALT_BYTES_MAX, ScramClient, ScramError

NONCE = "rOprNGfwEbeRWgbNEkqO"
SERVER_NONCE = f"{NONCE}%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0"
SERVER_FIRST = f"r={SERVER_NONCE},s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096"
SIGNATURE = "v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4="


def client() -> ScramClient:
    return ScramClient("SCRAM-SHA-256", "user", "pencil", NONCE)


def test_the_example_of_rfc_7677_is_spoken_to_the_letter() -> None:
    one = client()
    assert one.first() == f"n,,n=user,r={NONCE}".encode()
    assert one.final(SERVER_FIRST.encode()) == (
        f"c=biws,r={SERVER_NONCE},p=dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ=".encode()
    )
    one.check(SIGNATURE.encode())


def test_a_name_with_a_comma_or_an_equals_sign_is_escaped() -> None:
    assert ScramClient("SCRAM-SHA-512", "a=b,c", "p", "x").first() == b"n,,n=a=3Db=2Cc,r=x"


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        (SERVER_FIRST.replace(NONCE, "x" * len(NONCE)), "nonce does not go on from ours"),
        (SERVER_FIRST.replace(SERVER_NONCE, NONCE), "nonce does not go on from ours"),
        (SERVER_FIRST.replace("4096", "4095"), "wants 4095 iterations; between 4096 and 1000000"),
        (SERVER_FIRST.replace("4096", "1000001"), "wants 1000001 iterations"),
        (SERVER_FIRST.replace("4096", "9" * 5_000), "not a number"),
        (SERVER_FIRST.replace("4096", "-4096"), "not a number"),
        (SERVER_FIRST.replace("W22ZaJ0SNY7soEsUEjb6gQ==", "!"), "not base64"),
        (SERVER_FIRST.replace("W22ZaJ0SNY7soEsUEjb6gQ==", "é"), "not base64"),
        (SERVER_FIRST.replace("W22ZaJ0SNY7soEsUEjb6gQ==", ""), "has no s="),
        (
            f"r={SERVER_NONCE},s={base64.b64encode(bytes(SALT_BYTES_MAX + 1)).decode()},i=4096",
            "salt has 1025 bytes",
        ),
        (SERVER_FIRST.partition(",i=")[0], "has no i="),
        (f"m=ext,{SERVER_FIRST}", "extension that is not known"),
        (f"{SERVER_FIRST},i=8192", "not one of SCRAM"),
        ("nonsense", "not one of SCRAM"),
        ("", "not one of SCRAM"),
    ],
)
def test_an_answer_that_is_wrong_is_given_no_proof(answer: str, why: str) -> None:
    with pytest.raises(ScramError, match=why):
        client().final(answer.encode())


def test_an_answer_that_is_no_text_is_given_no_proof() -> None:
    with pytest.raises(ScramError, match="not UTF-8"):
        client().final(b"r=\xff")


def test_what_a_server_adds_at_the_end_is_passed_over() -> None:
    client().final(f"{SERVER_FIRST},x=later".encode())


@pytest.mark.parametrize(
    ("last", "why"),
    [
        ("v=" + base64.b64encode(bytes(32)).decode(), "could not prove that it knows the password"),
        ("v=" + base64.b64encode(b"").decode(), "has no v="),
        ("v=!", "not base64"),
        ("v=é", "not base64"),
        ("e=other-error", "it says other-error"),
        ("", "not one of SCRAM"),
    ],
)
def test_a_server_that_does_not_know_the_password_is_found_out(last: str, why: str) -> None:
    one = client()
    one.final(SERVER_FIRST.encode())
    with pytest.raises(ScramError, match=why):
        one.check(last.encode())


def test_a_server_cannot_leave_out_the_proof() -> None:
    with pytest.raises(ScramError, match="could not prove"):
        client().check(SIGNATURE.encode())

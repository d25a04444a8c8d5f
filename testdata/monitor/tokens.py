#!/usr/bin/env python3
"""Makes tokens.json: keys as dotnet-monitor's configuration has them, and tokens of each kind.

Needs the package `cryptography`, which binds OpenSSL. Keys and signatures are random: another run makes
another file.
"""
import base64
import hmac
import json
import sys

from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec, padding, rsa, utils

AUDIENCE = "https://github.com/dotnet/dotnet-monitor"
ISSUER = AUDIENCE + "/generatekey+MonitorApiKey"
SUBJECT = "ae5473b6-8dad-498d-b915-0123456789ab"
NOW = 1_700_000_000
HASHES = {"256": hashes.SHA256(), "384": hashes.SHA384(), "512": hashes.SHA512()}


def encode(data):
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def number(value, length):
    return encode(value.to_bytes(length, "big"))


def jwk(key):
    public = key.public_key().public_numbers()
    if isinstance(key, rsa.RSAPrivateKey):
        return {"AdditionalData": {}, "Alg": None, "E": number(public.e, 3), "KeyOps": [], "Kty": "RSA",
                "N": number(public.n, (key.key_size + 7) // 8), "KeySize": key.key_size,
                "HasPrivateKey": False}
    length = (key.key_size + 7) // 8
    # The case of the members is that of .NET; one key has that of the specification.
    names = ["kty", "crv", "x", "y"] if key.key_size == 256 else ["Kty", "Crv", "X", "Y"]
    curve = {256: "P-256", 384: "P-384", 521: "P-521"}[key.key_size]
    return dict(zip(names, ["EC", curve, number(public.x, length), number(public.y, length)]))


def sign(key, algorithm, message):
    if algorithm == "none":
        return b""
    kind, size = algorithm[:2], algorithm[2:]
    if kind == "HS":
        return hmac.new(key, message, "sha" + size).digest()
    if kind == "RS":
        return key.sign(message, padding.PKCS1v15(), HASHES[size])
    length = (key.key_size + 7) // 8
    r, s = utils.decode_dss_signature(key.sign(message, ec.ECDSA(HASHES[size])))
    return r.to_bytes(length, "big") + s.to_bytes(length, "big")


def token(key, algorithm, claims=None, header=None, said=None):
    head = {"alg": said or algorithm, "typ": "JWT", **(header or {})}
    body = {"aud": AUDIENCE, "exp": str(NOW + 3600), "iss": ISSUER, "sub": SUBJECT, **(claims or {})}
    body = {name: value for name, value in body.items() if value is not None}
    message = ".".join(encode(json.dumps(part).encode()) for part in (head, body))
    return message + "." + encode(sign(key, algorithm, message.encode()))


def main():
    curves = (ec.SECP256R1(), ec.SECP384R1(), ec.SECP521R1())
    p256, p384, p521 = (ec.generate_private_key(curve) for curve in curves)
    rsa_key = rsa.generate_private_key(65537, 2048)
    other = ec.generate_private_key(ec.SECP384R1())
    public = encode(json.dumps(jwk(p384)).encode())
    accepted = [("ES256", p256), ("ES384", p384), ("ES512", p521), ("RS256", rsa_key), ("RS384", rsa_key),
                ("RS512", rsa_key)]
    valid = token(p384, "ES384")
    head, body, signature = valid.split(".")
    changed = encode(base64.urlsafe_b64decode(body + "==").replace(b"0123456789ab", b"0123456789ac"))
    # Confusion of algorithms: the public key as the secret of an HMAC.
    secret = public.encode()
    refused = {
        "none": (token(None, "none"), "Algorithm"),
        "none, with a signature": (token(p384, "ES384", said="none"), "Algorithm"),
        "HS256 by the public key": (token(secret, "HS256"), "Algorithm"),
        "HS512 by the public key": (token(secret, "HS512"), "Algorithm"),
        "HMAC that says ES384": (token(secret, "HS384", said="ES384"), "Signature"),
        "another curve": (token(p256, "ES256"), "Algorithm"),
        "another type of key": (token(rsa_key, "RS384"), "Algorithm"),
        "another type of key that says ES384": (token(rsa_key, "RS384", said="ES384"), "Signature"),
        "another key": (token(other, "ES384"), "Signature"),
        "another hash": (token(p384, "ES256", said="ES384"), "Signature"),
        "PS384": (token(rsa_key, "RS384", said="PS384"), "Algorithm"),
        "es384 in small letters": (token(p384, "ES384", said="es384"), "Algorithm"),
        "claims of another": (f"{head}.{changed}.{signature}", "Signature"),
        "without a signature": (f"{head}.{body}.", "Signature"),
        "a signature of zeros": (f"{head}.{body}.{encode(bytes(96))}", "Signature"),
        "two parts": (f"{head}.{body}", "Form"),
        "four parts": (valid + ".e30", "Form"),
        "padded": (valid + "==", "Form"),
        "an extension that has to be understood":
            (token(p384, "ES384", header={"crit": ["b64"], "b64": False}), "Form"),
        "expired": (token(p384, "ES384", {"exp": NOW - 301}), "Expired"),
        "without an end": (token(p384, "ES384", {"exp": None}), "Expired"),
        "an end that is not a time": (token(p384, "ES384", {"exp": "soon"}), "Expired"),
        "an end before 1970": (token(p384, "ES384", {"exp": -1}), "Expired"),
        "not valid yet": (token(p384, "ES384", {"nbf": NOW + 301}), "Early"),
        "another audience": (token(p384, "ES384", {"aud": AUDIENCE + "/"}), "Audience"),
        "no audience": (token(p384, "ES384", {"aud": None}), "Audience"),
        "audiences without this one": (token(p384, "ES384", {"aud": ["a", "b"]}), "Audience"),
        "another issuer": (token(p384, "ES384", {"iss": "me"}), "Issuer"),
        "no issuer": (token(p384, "ES384", {"iss": None}), "Issuer"),
        "another subject": (token(p384, "ES384", {"sub": SUBJECT.upper()}), "Subject"),
        "no subject": (token(p384, "ES384", {"sub": None}), "Subject"),
    }
    more = {
        "within the skew of the clocks": token(p384, "ES384", {"exp": NOW - 299, "nbf": NOW + 299}),
        "several audiences": token(p384, "ES384", {"aud": ["a", AUDIENCE]}),
        "an end as a number": token(p384, "ES384", {"exp": NOW + 0.5}),
    }
    result = {
        "subject": SUBJECT,
        "now": NOW,
        "accepted": [{"algorithm": algorithm, "publicKey": encode(json.dumps(jwk(key)).encode()),
                      "token": token(key, algorithm)} for algorithm, key in accepted],
        "publicKey": public,
        "alsoAccepted": more,
        "refused": {name: {"token": text, "error": error} for name, (text, error) in refused.items()},
        "forEver": token(p384, "ES384", {"exp": 32_503_680_000}),
        "expired": token(p384, "ES384"),
    }
    json.dump(result, sys.stdout, indent=1)
    print()


main()

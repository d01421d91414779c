"""Store events with their signatures, as the stores post them."""

import base64
import datetime
import hashlib
import hmac
import json
import os
import time
import uuid

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, utils
from cryptography.x509.oid import NameOID, ObjectIdentifier

from . import processes

AUTHORIZATION = "Bearer a-secret-of-the-tests"
SIGNING_SECRET = "another-secret-of-the-tests"
BUNDLE = "com.example.chat"
STRIPE_SECRET = "whsec_of-the-tests"


def milliseconds(instant):
    """Parses `2026-03-15T09:30:00Z`, with or without a fraction."""
    return round(datetime.datetime.fromisoformat(instant.replace("Z", "+00:00")).timestamp() * 1000)


def compact(value):
    return json.dumps(value, separators=(",", ":")).encode()


def revenuecat(kind, at, user, transaction, **fields):
    """A RevenueCat event. Fields that end in `_at_ms` may be instants; `...` omits a field."""
    event = {
        "id": str(uuid.uuid4()), "type": kind, "event_timestamp_ms": milliseconds(at), "app_id": "app1234567890",
        "app_user_id": user, "original_app_user_id": user, "aliases": user if user is ... else [user], "environment": "PRODUCTION",
        "store": "APP_STORE",
        "product_id": "premium", "period_type": "NORMAL", "transaction_id": transaction if transaction is ... else transaction + "-1",
        "original_transaction_id": transaction, "currency": "USD", "price": 4.99, "country_code": "US",
        "subscriber_attributes": {"$email": {"value": "ann@example.com", "updated_at_ms": 1}}, "presented_offering_id": None,
    }  # fmt: skip
    for name, value in fields.items():
        event[name] = milliseconds(value) if name.endswith("_at_ms") and isinstance(value, str) else value
    return {"api_version": "1.0", "event": {name: value for name, value in event.items() if value is not ...}}


def seconds(instant):
    """Seconds since 1970 of `2026-03-15T09:30:00Z`; None stays None."""
    return None if instant is None else milliseconds(instant) // 1000


def stripe(kind, at, **fields):
    """A Stripe event about the object with these fields. `previous` are the changed attributes."""
    data = {"object": {name: value for name, value in fields.items() if value is not ... and name != "previous"}}
    if "previous" in fields:
        data["previous_attributes"] = fields["previous"]
    return {
        "id": "evt_" + uuid.uuid4().hex, "object": "event", "type": kind, "created": seconds(at), "livemode": True,
        "api_version": "2024-06-20", "pending_webhooks": 1, "data": data,
    }  # fmt: skip


def stripe_customer(transaction):
    """The subscription's customer; each subscription has its own, so that tests are independent."""
    return "cus_" + transaction


def stripe_subscription(
    kind, status, at, user, transaction, period, product="premium", trial_end=None, cancel_at=None, at_end=False,
    ended_at=None, next_attempt=None, **fields
):  # fmt: skip
    """An event of a subscription with the instants `period`; without `user` its metadata has no user. Several products are items."""
    invoice = "in_" + transaction
    start, end = (seconds(instant) for instant in period)
    return stripe(
        "customer.subscription." + kind, at, id="sub_" + transaction, object="subscription", status=status,
        customer=stripe_customer(transaction), start_date=start, current_period_start=start, current_period_end=end,
        trial_start=start if trial_end else None, trial_end=seconds(trial_end), cancel_at=seconds(cancel_at),
        cancel_at_period_end=at_end, ended_at=seconds(ended_at), metadata={"user_id": user} if user else {},
        description="ann@example.com", currency="usd",
        items={"object": "list", "data": [
            {"id": f"si_{name}", "price": {"id": name, "product": "prod_1", "unit_amount": 4990}} for name in _several(product)]},
        latest_invoice={"id": invoice, "next_payment_attempt": seconds(next_attempt)} if next_attempt else invoice, **fields,
    )  # fmt: skip


def stripe_invoice(kind, at, transaction, period, next_attempt=None, reason="subscription_cycle", product="premium"):
    """An event of an invoice for a period of a subscription, with a line for each product."""
    start, end = (seconds(instant) for instant in period)
    return stripe(
        "invoice." + kind, at, id="in_" + transaction, object="invoice", customer=stripe_customer(transaction),
        customer_email="ann@example.com", subscription="sub_" + transaction, billing_reason=reason, amount_due=4990,
        next_payment_attempt=seconds(next_attempt),
        lines={"object": "list", "data": [{
            "type": "subscription", "proration": False, "period": {"start": start, "end": end}, "price": {"id": name}}
            for name in _several(product)]},
    )  # fmt: skip


def _several(product):
    return [product] if isinstance(product, str) else product


def stripe_refund(at, transaction, **fields):
    """A refunded charge, with its invoice."""
    invoice = {"id": "in_" + transaction, "object": "invoice", "subscription": "sub_" + transaction}
    charge = {"refunded": True, "amount_refunded": 4990, "receipt_email": "ann@example.com", "invoice": invoice, **fields}
    return stripe("charge.refunded", at, id="ch_" + transaction, object="charge", customer=stripe_customer(transaction), **charge)


def stripe_checkout(at, user, transaction, kind="completed", mode="subscription", **fields):
    return stripe(
        "checkout.session." + kind, at, id="cs_" + transaction, object="checkout.session", mode=mode,
        customer=stripe_customer(transaction), client_reference_id=user, customer_details={"email": "ann@example.com"}, **fields,
    )  # fmt: skip


def stripe_sale(at, user, transaction, product=None, status="paid", **fields):
    """A session of Checkout for what is bought once, with its product in the metadata."""
    return stripe_checkout(
        at, user, transaction, mode="payment", payment_status=status, payment_intent="pi_" + transaction,
        metadata={"headroom_product": product} if product else {}, **fields,
    )  # fmt: skip


def stripe_manual_invoice(at, transaction, *products):
    """The paid invoice of a session of Checkout, in the form of API versions since 2025-03-31."""
    return stripe(
        "invoice.paid", at, id="in_" + transaction, object="invoice", customer=stripe_customer(transaction), parent=None,
        billing_reason="manual", lines={"object": "list", "data": [{
            "period": {"start": seconds(at), "end": seconds(at)}, "quantity": 1, "parent": {"type": "invoice_item_details"},
            "pricing": {"type": "price_details", "price_details": {"price": name, "product": "prod_1"}}} for name in products]},
    )  # fmt: skip


def stripe_signature(body, *secrets, at=None, scheme="v1"):
    """Stripe's signature: one code for each secret."""
    moment = int(time.time() if at is None else at)
    codes = (hmac.new(s.encode(), f"{moment}.".encode() + body, hashlib.sha256).hexdigest() for s in secrets or (STRIPE_SECRET,))
    return ",".join([f"t={moment}", *(f"{scheme}={code}" for code in codes)])


def revenuecat_signature(body, secret=SIGNING_SECRET, at=None):
    seconds = int(time.time() if at is None else at)
    code = hmac.new(secret.encode(), f"{seconds}.".encode() + body, hashlib.sha256).hexdigest()
    return f"t={seconds},v1={code}"


class AppStore:
    """Signs as the App Store does, with a test root, intermediate and signer."""

    SIGNER_MARK = "1.2.840.113635.100.6.11.1"
    INTERMEDIATE_MARK = "1.2.840.113635.100.6.2.1"

    def __init__(self):
        self.root_key, self.root = self._issue("Test Root", None, None)
        key, intermediate = self._issue("Test Intermediate", self.root_key, self.root, self.INTERMEDIATE_MARK)
        self.key, signer = self._issue("Test Signer", key, intermediate, self.SIGNER_MARK, is_authority=False)
        self.chain = [signer, intermediate, self.root]
        self.root_file = os.path.join(processes.directory(), "root.cer")
        with open(self.root_file, "wb") as file:
            file.write(self.root.public_bytes(serialization.Encoding.DER))

    @property
    def flags(self):
        return ("--appstore-bundle-id", BUNDLE, "--appstore-root-certificate", self.root_file)

    @staticmethod
    def _issue(name, issuer_key, issuer, mark=None, is_authority=True):
        key = ec.generate_private_key(ec.SECP256R1())
        subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
        builder = (
            x509.CertificateBuilder()
            .subject_name(subject)
            .issuer_name(issuer.subject if issuer else subject)
            .public_key(key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(datetime.datetime(2020, 1, 1))
            .not_valid_after(datetime.datetime(2040, 1, 1))
            .add_extension(x509.BasicConstraints(ca=is_authority, path_length=None), critical=True)
        )
        if mark:
            builder = builder.add_extension(x509.UnrecognizedExtension(ObjectIdentifier(mark), b"\x05\x00"), critical=False)
        return key, builder.sign(issuer_key or key, hashes.SHA256())

    def sign(self, payload, algorithm="ES256", chain=None):
        """A JWS in compact form; bytes are used as they are."""

        def part(data):
            return base64.urlsafe_b64encode(data).rstrip(b"=")

        certificates = [c.public_bytes(serialization.Encoding.DER) for c in chain or self.chain]
        header = {"alg": algorithm, "x5c": [base64.b64encode(c).decode() for c in certificates]}
        signed = part(compact(header)) + b"." + part(payload if isinstance(payload, bytes) else compact(payload))
        r, s = utils.decode_dss_signature(self.key.sign(signed, ec.ECDSA(hashes.SHA256())))
        return (signed + b"." + part(r.to_bytes(32, "big") + s.to_bytes(32, "big"))).decode()

    def notification(
        self, kind, subtype, at, user, transaction, product="premium", status=None, environment="Production",
        bundle=BUNDLE, grace_until=None, next_product=None, without=(), **fields
    ):  # fmt: skip
        """A notification as the App Store posts it. `fields` are the transaction's; those that end in `Date` may be instants."""
        info = {
            "originalTransactionId": transaction, "transactionId": transaction + "1", "bundleId": bundle, "productId": product,
            "type": "Auto-Renewable Subscription", "environment": environment, "signedDate": milliseconds(at), "quantity": 1,
            "price": 4990, "currency": "USD", "storefront": "USA",
        }  # fmt: skip
        if user:
            info["appAccountToken"] = user.upper()
        for name, value in fields.items():
            info[name] = milliseconds(value) if name.endswith("Date") else value
        renewal = {
            "originalTransactionId": transaction, "productId": product, "autoRenewProductId": next_product or product,
            "autoRenewStatus": 1, "environment": environment, "signedDate": milliseconds(at),
        }  # fmt: skip
        if grace_until:
            renewal["gracePeriodExpiresDate"] = milliseconds(grace_until)
        data = {"bundleId": bundle, "environment": environment, "bundleVersion": "1.0"}
        if status:
            data["status"] = status
        if "transaction" not in without:
            data["signedTransactionInfo"] = self.sign(info)
        if "renewal" not in without:
            data["signedRenewalInfo"] = self.sign(renewal)
        payload = {"notificationType": kind, "notificationUUID": str(uuid.uuid4()), "version": "2.0", "signedDate": milliseconds(at)}
        if subtype:
            payload["subtype"] = subtype
        if "data" not in without:
            payload["data"] = data
        return {"signedPayload": self.sign(payload)}

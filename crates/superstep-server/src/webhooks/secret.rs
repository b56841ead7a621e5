//! Signatures of deliveries, in the form of Standard Webhooks.

use std::fmt;
use std::str::FromStr;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hmac::{Hmac, Mac as _};
use sha2::Sha256;

/// A secret that deliveries are signed with: `whsec_` and 24 to 64 bytes in base64.
#[derive(Clone, PartialEq, Eq)]
pub struct WebhookSecret(Vec<u8>);

/// Why a text is not a [`WebhookSecret`]. Does not repeat the text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error(
    "not a webhook secret; it is `whsec_` and 24 to 64 random bytes in base64, such as from \
     `echo whsec_$(openssl rand -base64 32)`"
)]
pub struct BadWebhookSecret;

impl FromStr for WebhookSecret {
    type Err = BadWebhookSecret;

    fn from_str(text: &str) -> Result<Self, BadWebhookSecret> {
        let encoded = text.trim().strip_prefix(PREFIX).ok_or(BadWebhookSecret)?;
        let key = STANDARD.decode(encoded).map_err(|_| BadWebhookSecret)?;
        match BYTES.contains(&key.len()) {
            true => Ok(Self(key)),
            false => Err(BadWebhookSecret),
        }
    }
}

impl fmt::Debug for WebhookSecret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("WebhookSecret")
    }
}

impl WebhookSecret {
    /// Returns the signature of a delivery as the header has it. `timestamp` is in seconds since 1970.
    pub(super) fn sign(&self, id: &str, timestamp: i64, body: &[u8]) -> String {
        let mut hmac =
            Hmac::<Sha256>::new_from_slice(&self.0).expect("a key of any length is valid");
        hmac.update(format!("{id}.{timestamp}.").as_bytes());
        hmac.update(body);
        format!("v1,{}", STANDARD.encode(hmac.finalize().into_bytes()))
    }
}

const PREFIX: &str = "whsec_";
/// Lengths of secrets that Standard Webhooks allows.
const BYTES: std::ops::RangeInclusive<usize> = 24..=64;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_signature_is_what_verifiers_of_standard_webhooks_compute() {
        let secret: WebhookSecret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw".parse().unwrap();
        let signature = secret.sign(
            "msg_p5jXN8AQM9LWM0D4loKWxJek",
            1_614_265_330,
            br#"{"test": 2432232314}"#,
        );
        assert_eq!(signature, "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=");
        assert!(!format!("{secret:?}").contains("MfKQ"));
    }

    #[test]
    fn what_is_too_short_or_not_base64_is_not_a_secret() {
        for text in [
            "",
            "whsec_",
            "whsec_c2hvcnQ=",
            "MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw",
            "whsec_ä",
        ] {
            assert_eq!(
                text.parse::<WebhookSecret>(),
                Err(BadWebhookSecret),
                "{text}"
            );
        }
    }
}

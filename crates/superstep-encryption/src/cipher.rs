//! The encryption of one thing with one data key: what comes out is `key id · nonce · ciphertext and tag`.
//!
//! The cipher is XChaCha20-Poly1305. Its nonce is not random: it is the first 24 bytes of an HMAC-SHA-256 of the place and the plain
//! bytes, under a second key. So the same thing in the same place is always encrypted to the same bytes, which the rules of the stores
//! need: a repeated commit is recognized by its bytes, and a record or an answer that is given again is the one that is there. This is
//! the construction of SIV modes. Two different things never share a nonce (a collision of 192 bits aside), on however many machines,
//! and with however many restored backups; a counter or a random 96-bit nonce would be safe only as long as no machine is cloned.
//! What the construction shows to a reader of the database is whether two versions of the *same place* are equal, and nothing more:
//! the place is part of the nonce.
//!
//! AES-256-GCM-SIV has the same properties. We take XChaCha20-Poly1305, because its crate has been audited, is constant-time without
//! hardware support, is small, and because 192 bits leave no limit on how much one key encrypts that anybody could reach.
//!
//! The place is associated data: what is moved to another thread, number, key or tenant does not decrypt.

use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use chacha20poly1305::aead::{Aead, KeyInit, Payload};
use chacha20poly1305::{Key, XChaCha20Poly1305, XNonce};
use hmac::{Hmac, Mac};
use serde::{Deserialize, Serialize};
use sha2::Sha256;
use zeroize::Zeroizing;

use crate::error::EncryptionError;

/// Bytes of a secret key.
pub const KEY_BYTES: usize = 32;

/// A secret that is overwritten when it is dropped.
pub(crate) type Secret = Zeroizing<[u8; KEY_BYTES]>;

/// Id of a data key: random, so that a key is never taken for another one, also not of a tenant with a name that was used before.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub struct KeyId([u8; KEY_ID_BYTES]);

const KEY_ID_BYTES: usize = 8;
const NONCE_BYTES: usize = 24;
const TAG_BYTES: usize = 16;

impl KeyId {
    /// Draws an id.
    pub(crate) fn random() -> Result<Self, EncryptionError> {
        let mut id = [0; KEY_ID_BYTES];
        getrandom::fill(&mut id).map_err(|_| EncryptionError::Entropy)?;
        Ok(Self(id))
    }

    /// Returns the id of the key with which something was encrypted; `None` if there is too little of it.
    pub(crate) fn of(encrypted: &[u8]) -> Option<Self> {
        (encrypted.len() >= KEY_ID_BYTES + NONCE_BYTES + TAG_BYTES)
            .then(|| encrypted.first_chunk().copied().map(Self))
            .flatten()
    }
}

impl fmt::Display for KeyId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for KeyId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")
    }
}

impl From<KeyId> for String {
    fn from(id: KeyId) -> Self {
        id.to_string()
    }
}

impl TryFrom<String> for KeyId {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        let bytes = from_hex(&text).and_then(|bytes| bytes.try_into().ok());
        bytes.map(Self).ok_or_else(|| "not a key id".to_owned())
    }
}

/// Where something is stored, in a form that no two places share: each part has its length in front of it.
#[derive(Clone)]
pub(crate) struct Place(Vec<u8>);

impl Place {
    /// Of this kind, and of a tenant.
    pub(crate) fn new(kind: &str, tenant: &str) -> Self {
        Self(b"superstep 1".to_vec()).text(kind).text(tenant)
    }

    pub(crate) fn text(self, part: &str) -> Self {
        self.bytes(part.as_bytes())
    }

    pub(crate) fn bytes(mut self, part: &[u8]) -> Self {
        self.0.extend_from_slice(&(part.len() as u64).to_le_bytes());
        self.0.extend_from_slice(part);
        self
    }

    pub(crate) fn number(self, part: u64) -> Self {
        self.bytes(&part.to_le_bytes())
    }

    pub(crate) fn as_bytes(&self) -> &[u8] {
        &self.0
    }
}

/// A data key of a tenant.
pub(crate) struct DataKey {
    pub(crate) id: KeyId,
    cipher: Secret,
    nonces: Secret,
}

impl DataKey {
    /// Derives the keys for encryption and for nonces from the secret that is stored wrapped.
    pub(crate) fn new(id: KeyId, secret: &Secret) -> Self {
        Self {
            id,
            cipher: derive(secret, b"superstep 1: cipher"),
            nonces: derive(secret, b"superstep 1: nonce"),
        }
    }

    /// Encrypts plain bytes for their place.
    pub(crate) fn encrypt(&self, place: &Place, plain: &[u8]) -> Vec<u8> {
        let place = place.clone().bytes(&self.id.0);
        let mut mac = mac(&self.nonces);
        mac.update(&(place.0.len() as u64).to_le_bytes());
        mac.update(&place.0);
        mac.update(plain);
        let nonce = mac.finalize().into_bytes();
        let nonce = &nonce[..NONCE_BYTES];
        let encrypted = encrypt(&self.cipher, nonce, &place.0, plain);
        [&self.id.0[..], nonce, &encrypted].concat()
    }

    /// Decrypts what [`DataKey::encrypt`] returned for this place; `None` if it is anything else.
    pub(crate) fn decrypt(&self, place: &Place, encrypted: &[u8]) -> Option<Vec<u8>> {
        let place = place.clone().bytes(&self.id.0);
        let (id, rest) = encrypted.split_at_checked(KEY_ID_BYTES)?;
        let (nonce, encrypted) = rest.split_at_checked(NONCE_BYTES)?;
        if id != self.id.0 {
            return None;
        }
        decrypt(&self.cipher, nonce, &place.0, encrypted)
    }
}

/// Wraps a secret with another key, for a place. The nonce is random: a key is wrapped a few times in its life.
pub(crate) fn wrap(
    with: &Secret,
    place: &[u8],
    secret: &Secret,
) -> Result<Vec<u8>, EncryptionError> {
    let mut nonce = [0; NONCE_BYTES];
    getrandom::fill(&mut nonce).map_err(|_| EncryptionError::Entropy)?;
    let encrypted = encrypt(with, &nonce, place, &secret[..]);
    Ok([&nonce[..], &encrypted].concat())
}

/// Returns the secret that was wrapped for this place; `None` if it was changed, or wrapped with another key.
pub(crate) fn unwrap(with: &Secret, place: &[u8], wrapped: &[u8]) -> Option<Secret> {
    let (nonce, encrypted) = wrapped.split_at_checked(NONCE_BYTES)?;
    let plain = Zeroizing::new(decrypt(with, nonce, place, encrypted)?);
    let secret: [u8; KEY_BYTES] = plain.as_slice().try_into().ok()?;
    Some(Zeroizing::new(secret))
}

/// Draws a secret.
pub(crate) fn random_secret() -> Result<Secret, EncryptionError> {
    let mut secret = Zeroizing::new([0; KEY_BYTES]);
    getrandom::fill(&mut secret[..]).map_err(|_| EncryptionError::Entropy)?;
    Ok(secret)
}

/// Derives a key for one use from a secret.
pub(crate) fn derive(secret: &Secret, purpose: &[u8]) -> Secret {
    let mut mac = mac(secret);
    mac.update(purpose);
    Zeroizing::new(mac.finalize().into_bytes().into())
}

/// Returns a keyed hash.
pub(crate) fn mac(key: &Secret) -> Hmac<Sha256> {
    <Hmac<Sha256> as Mac>::new_from_slice(&key[..]).expect("HMAC takes keys of any length")
}

fn encrypt(key: &Secret, nonce: &[u8], place: &[u8], plain: &[u8]) -> Vec<u8> {
    let cipher = XChaCha20Poly1305::new(&Key::from(**key));
    let nonce = XNonce::try_from(nonce).expect("a nonce has 24 bytes");
    let payload = Payload {
        msg: plain,
        aad: place,
    };
    let encrypted = cipher.encrypt(&nonce, payload);
    encrypted.expect("only 256 GiB are too long for the cipher")
}

fn decrypt(key: &Secret, nonce: &[u8], place: &[u8], encrypted: &[u8]) -> Option<Vec<u8>> {
    let cipher = XChaCha20Poly1305::new(&Key::from(**key));
    let nonce = XNonce::try_from(nonce).ok()?;
    let payload = Payload {
        msg: encrypted,
        aad: place,
    };
    cipher.decrypt(&nonce, payload).ok()
}

/// Returns bytes as text that JSON and every database take.
pub(crate) fn to_text(bytes: &[u8]) -> String {
    URL_SAFE_NO_PAD.encode(bytes)
}

pub(crate) fn from_text(text: &str) -> Option<Vec<u8>> {
    URL_SAFE_NO_PAD.decode(text).ok()
}

pub(crate) fn to_hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Decodes hexadecimal digits.
pub(crate) fn from_hex(text: &str) -> Option<Vec<u8>> {
    if text.len() % 2 == 1 || !text.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return None;
    }
    let byte = |at| u8::from_str_radix(&text[at..at + 2], 16).ok();
    (0..text.len()).step_by(2).map(byte).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(n: u8) -> DataKey {
        DataKey::new(KeyId([n; 8]), &Zeroizing::new([n; 32]))
    }

    fn place(seq: u64) -> Place {
        Place::new("entry", "acme").text("thread").number(seq)
    }

    #[test]
    fn the_same_thing_in_the_same_place_is_the_same_bytes() {
        let one = key(1).encrypt(&place(1), b"text");
        assert_eq!(one, key(1).encrypt(&place(1), b"text"));
        let others = [
            key(1).encrypt(&place(2), b"text"),
            key(1).encrypt(&place(1), b"test"),
            key(2).encrypt(&place(1), b"text"),
        ];
        // Neither the nonces nor the bytes behind them are shared.
        for other in others {
            assert_ne!(one[8..32], other[8..32]);
            assert_ne!(one[32..], other[32..]);
        }
        assert!(!one.windows(4).any(|part| part == b"text"));
    }

    #[test]
    fn nothing_is_decrypted_that_was_changed_or_moved() {
        let one = key(1).encrypt(&place(1), b"text");
        assert_eq!(
            key(1).decrypt(&place(1), &one).as_deref(),
            Some(&b"text"[..])
        );
        assert_eq!(key(1).decrypt(&place(2), &one), None);
        assert_eq!(key(2).decrypt(&place(1), &one), None);
        let renamed = DataKey::new(KeyId([2; 8]), &Zeroizing::new([1; 32]));
        let moved = [&[2; 8], &one[8..]].concat();
        assert_eq!(renamed.decrypt(&place(1), &moved), None, "another id");
        for bit in 0..one.len() * 8 {
            let mut changed = one.clone();
            changed[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(key(1).decrypt(&place(1), &changed), None, "bit {bit}");
        }
        for length in 0..one.len() {
            assert_eq!(key(1).decrypt(&place(1), &one[..length]), None);
        }
    }

    #[test]
    fn parts_of_a_place_do_not_run_together() {
        let places = [
            Place::new("a", "").text("b"),
            Place::new("", "a").text("b"),
            Place::new("a", "b"),
            Place::new("ab", ""),
            Place::new("a", "").text("").text("b"),
        ];
        let distinct: std::collections::BTreeSet<_> = places.iter().map(Place::as_bytes).collect();
        assert_eq!(distinct.len(), places.len());
    }

    #[test]
    fn a_known_answer_stays_the_same() {
        // What is stored is decrypted for years, so a change of a crate that changes it must be seen. Computed by another program, from
        // the descriptions of HMAC and XChaCha20-Poly1305.
        let encrypted = key(7).encrypt(&place(3), b"known");
        assert_eq!(to_hex(&encrypted), KNOWN);
    }

    const KNOWN: &str = "0707070707070707f34b1b0cb64da0bed4504709e43e6314b256e69c288791b262520ca02eaa039d59b1902be745538fae8e8a94c0";
}

//! Removes a secret that a server repeats from its answer, before the answer is printed, stored or logged.
//!
//! A server can repeat a token as it was sent, or as part of a URL, of JSON or of a decoded header. Other
//! transformations, such as encryption or reversal, are not detected; a server that means to leak the token does not need our
//! answer for that.

use aho_corasick::AhoCorasick;
use base64::Engine;
use base64::alphabet;
use base64::engine::general_purpose::{GeneralPurpose, NO_PAD};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::Value as Json;

use crate::{Answer, Credential};

/// Removes secrets from a value, in the encodings in which servers repeat them.
pub fn remove_secrets<'a>(value: &mut Json, secrets: impl IntoIterator<Item = &'a str>) {
    for redaction in secrets.into_iter().filter_map(Redaction::of_secret) {
        redaction.json(value);
    }
}

/// Text that replaces a secret.
pub const REDACTED: &str = "[redacted]";

/// Finds one secret in the encodings in which servers repeat it.
pub(super) struct Redaction(AhoCorasick);

impl Redaction {
    /// Creates the search for a credential's secret. `None` if the secret is too short to distinguish it from other text.
    pub(super) fn of(credential: &Credential) -> Option<Self> {
        Self::of_secret(&credential.secret)
    }

    fn of_secret(secret: &str) -> Option<Self> {
        let forms = forms(secret);
        if forms.is_empty() {
            return None;
        }
        let built = AhoCorasick::builder()
            .ascii_case_insensitive(true)
            .match_kind(aho_corasick::MatchKind::LeftmostLongest)
            .build(forms);
        built.ok().map(Self)
    }

    /// Removes the secret from an answer.
    pub(super) fn apply(&self, answer: Answer) -> Answer {
        Answer {
            status: answer.status,
            content_type: self.text(&answer.content_type),
            location: answer.location.map(|location| self.text(&location)),
            retry_after: answer.retry_after,
            body: self.body(answer.body),
        }
    }

    fn body(&self, body: Vec<u8>) -> Vec<u8> {
        let body = match self.0.is_match(&body) {
            true => self.0.replace_all_bytes(&body, &self.replacements()),
            false => body,
        };
        // JSON may escape any character.
        if !body.contains(&b'\\') {
            return body;
        }
        let Ok(mut json) = serde_json::from_slice::<Json>(&body) else {
            return body;
        };
        match self.json(&mut json) {
            true => json.to_string().into_bytes(),
            false => body,
        }
    }

    /// Redacts all values, without stopping at the first match. Returns whether `found` was set or a value was changed.
    fn every<'a>(&self, mut found: bool, values: impl Iterator<Item = &'a mut Json>) -> bool {
        for value in values {
            found |= self.json(value);
        }
        found
    }

    /// Redacts a value in place. Returns whether it was changed.
    fn json(&self, value: &mut Json) -> bool {
        match value {
            Json::String(text) if self.0.is_match(text.as_str()) => {
                *text = self.text(text);
                true
            }
            Json::Array(items) => self.every(false, items.iter_mut()),
            Json::Object(fields) => {
                let named = fields.keys().any(|name| self.0.is_match(name.as_str()));
                if named {
                    let all = std::mem::take(fields).into_iter();
                    *fields = all.map(|(name, value)| (self.text(&name), value)).collect();
                }
                self.every(named, fields.values_mut())
            }
            _ => false,
        }
    }

    pub(super) fn text(&self, text: &str) -> String {
        self.0.replace_all(text, &self.replacements())
    }

    fn replacements(&self) -> Vec<&'static str> {
        vec![REDACTED; self.0.patterns_len()]
    }
}

fn forms(secret: &str) -> Vec<String> {
    if secret.len() < SECRET_BYTES_MIN {
        return Vec::new();
    }
    let hex: String = secret.bytes().map(|byte| format!("{byte:02x}")).collect();
    let mut forms = vec![
        secret.to_owned(),
        utf8_percent_encode(secret, NON_ALPHANUMERIC).to_string(),
        utf8_percent_encode(secret, ADDRESS).to_string(),
        utf8_percent_encode(secret, ADDRESS)
            .to_string()
            .replace("%20", "+"),
        secret.replace('/', "\\/"),
        secret
            .replace('&', "&amp;")
            .replace('<', "&lt;")
            .replace('>', "&gt;"),
        serde_json::json!(secret)
            .to_string()
            .trim_matches('"')
            .to_owned(),
        hex,
    ];
    for alphabet in [&alphabet::STANDARD, &alphabet::URL_SAFE] {
        forms.extend((0..3).map(|before| in_base64(secret, before, alphabet)));
    }
    forms.retain(|form| form.len() >= SECRET_BYTES_MIN);
    forms.sort();
    forms.dedup();
    forms
}

/// Returns the part of a base64 text that depends on the secret alone, if `before` bytes (modulo three) precede the secret.
fn in_base64(secret: &str, before: usize, alphabet: &alphabet::Alphabet) -> String {
    let bytes = [&vec![0; before][..], secret.as_bytes()].concat();
    let text = GeneralPurpose::new(alphabet, NO_PAD).encode(&bytes);
    let begin = (before * 8).div_ceil(6);
    let end = bytes.len() * 8 / 6;
    text.get(begin..end).unwrap_or_default().to_owned()
}

/// Characters that URL encoders escape: all but letters, digits and `-_.~`.
const ADDRESS: &AsciiSet = &NON_ALPHANUMERIC
    .remove(b'-')
    .remove(b'_')
    .remove(b'.')
    .remove(b'~');
/// Shorter secrets may occur in any text by chance.
const SECRET_BYTES_MIN: usize = 6;

#[cfg(test)]
mod tests {
    use base64::engine::general_purpose::STANDARD;

    use super::*;

    const SECRET: &str = "tok/en+7 f3&Zq==";

    fn redaction() -> Redaction {
        let credential = Credential {
            origin: "https://api.example.com".parse().unwrap(),
            header: "authorization".to_owned(),
            prefix: "Bearer ".to_owned(),
            secret: SECRET.to_owned(),
        };
        Redaction::of(&credential).unwrap()
    }

    #[test]
    fn a_secret_is_taken_out_in_every_form_that_servers_repeat() {
        let escaped: String = SECRET
            .chars()
            .map(|c| format!("\\u{:04x}", c as u32))
            .collect();
        for repeated in [
            format!("no such token: {SECRET}"),
            format!("NO SUCH TOKEN: {}", SECRET.to_uppercase()),
            format!(
                "{{\"error\": \"bad token {}\"}}",
                SECRET.replace('/', "\\/")
            ),
            format!("{{\"error\": \"bad token {escaped}\"}}"),
            format!("{{\"{escaped}\": 1}}"),
            format!("?token={}", utf8_percent_encode(SECRET, NON_ALPHANUMERIC)),
            format!(
                "?token={}",
                utf8_percent_encode(SECRET, NON_ALPHANUMERIC)
                    .to_string()
                    .to_lowercase()
            ),
            format!("Basic {}", STANDARD.encode(SECRET)),
            format!("Basic {}", STANDARD.encode(format!("u:{SECRET}"))),
            format!("Basic {}", STANDARD.encode(format!("me:{SECRET}:x"))),
            SECRET.bytes().map(|byte| format!("{byte:02X}")).collect(),
        ] {
            let answer = Answer {
                body: repeated.clone().into_bytes(),
                ..Answer::default()
            };
            let body = String::from_utf8(redaction().apply(answer).body).unwrap();
            assert!(body.contains(REDACTED), "{repeated}: {body}");
            assert!(
                !body.to_lowercase().contains(&SECRET.to_lowercase()),
                "{body}"
            );
        }
    }

    #[test]
    fn another_text_stays_as_it_is() {
        let body = br#"{"name": "a \u0041 token", "n": 1.50}"#.to_vec();
        let answer = Answer {
            body: body.clone(),
            ..Answer::default()
        };
        assert_eq!(redaction().apply(answer).body, body);
    }
}

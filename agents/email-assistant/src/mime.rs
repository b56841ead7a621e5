//! Parses emails from bytes and writes them as bytes.

use std::collections::BTreeMap;
use std::panic::catch_unwind;

use anyhow::Context;
use lettre::message::header::{ContentType, HeaderName, HeaderValue};
use lettre::message::{Attachment as Attached, Mailbox, MultiPart, SinglePart};
use mail_parser::{
    Address, HeaderName as Name, HeaderValue as Parsed, Message, MessageParser, MimeHeaders,
};
use sha2::{Digest, Sha256};

use super::email::{CALENDAR_METHOD, Email, HEADER_CHARS_MAX, HEADERS, addresses, bare_id};
use super::html;
use super::mailbox::Outgoing;

/// mail-parser panics at some boundaries that are nested where they cannot be. A sender of such an email must not stop the
/// assistant, so it counts as bytes that are not an email.
fn parse(bytes: &[u8]) -> Option<Message<'_>> {
    catch_unwind(|| MessageParser::default().parse(bytes)).unwrap_or_else(|_| {
        tracing::warn!("an email was skipped: its parts are nested in a way that cannot be read");
        None
    })
}

/// Parses an email, up to [`MAIL_BYTES_MAX`]. Returns `None` if the bytes are not an email.
pub fn read(bytes: &[u8]) -> Option<Email> {
    let is_cut = bytes.len() > MAIL_BYTES_MAX;
    let bytes = &bytes[..bytes.len().min(MAIL_BYTES_MAX)];
    let message = parse(bytes)?;
    // Prefer HTML, because mail programs show it. mail-parser's own conversion to text is not used: it includes hidden text.
    let seen = match html_text(&message) {
        Some(html) => html::visible_html(&html),
        None => html::visible(&plain_text(&message).unwrap_or_default()),
    };
    let mut hidden: Vec<String> = Vec::new();
    hidden.extend(Some(seen.removed).filter(|removed| !removed.is_empty()));
    let (to, to_left_out) = limited(list(message.to()));
    let (cc, cc_left_out) = limited(list(message.cc()));
    if to_left_out + cc_left_out > 0 {
        hidden.push(format!("{} further recipients", to_left_out + cc_left_out));
    }
    if is_cut {
        hidden.push(format!(
            "everything after the first {} MiB",
            MAIL_BYTES_MAX >> 20
        ));
    }
    let attachments = message
        .attachments()
        .filter_map(|part| part.attachment_name())
        .map(html::plain)
        .take(ATTACHMENTS_MAX);
    Some(Email {
        message_id: bare_id(&html::plain(message.message_id().unwrap_or_default())),
        references: ids(message.references()),
        from: first(message.from()),
        reply_to: first(message.reply_to()),
        to,
        cc,
        subject: html::plain(message.subject().unwrap_or_default()),
        date: message
            .date()
            .map(|date| date.to_rfc3339())
            .unwrap_or_default(),
        body: seen.text,
        hidden: hidden.join(", "),
        attachments: attachments.collect(),
        headers: headers(&message),
        fingerprint: fingerprint(&message),
        ..Email::default()
    })
}

/// Returns the headers that say how an email was sent. Several of one name are joined.
fn headers(message: &Message<'_>) -> BTreeMap<String, String> {
    let raw = message.raw_message();
    let mut found: BTreeMap<String, String> = BTreeMap::new();
    for header in message.headers() {
        let name = header.name.as_str().to_ascii_lowercase();
        if !HEADERS.contains(&name.as_str()) {
            continue;
        }
        let value = usize::try_from(header.offset_start).unwrap_or_default()
            ..usize::try_from(header.offset_end).unwrap_or_default();
        let value = String::from_utf8_lossy(raw.get(value).unwrap_or_default()).into_owned();
        let value = value.split_whitespace().collect::<Vec<_>>().join(" ");
        let known = found.entry(name).or_default();
        if !known.is_empty() {
            known.push_str("; ");
        }
        let left = HEADER_CHARS_MAX.saturating_sub(known.chars().count());
        known.extend(html::plain(&value).chars().take(left));
    }
    let mut parts = message.parts.iter().filter_map(|part| part.content_type());
    let calendar = parts.find(|kind| {
        kind.ctype().eq_ignore_ascii_case("text")
            && kind
                .subtype()
                .is_some_and(|subtype| subtype.eq_ignore_ascii_case("calendar"))
    });
    if let Some(calendar) = calendar {
        let method = calendar.attribute("method").unwrap_or("publish");
        let method: String = html::plain(method)
            .to_lowercase()
            .chars()
            .take(20)
            .collect();
        found.insert(CALENDAR_METHOD.to_owned(), method);
    }
    found
}

/// Hashes what identifies an email: the headers a person relies on, and the body except for white space at line ends. Another
/// email that reuses the `Message-ID` has another fingerprint; a mail program that changes flags or other headers does not
/// alter it.
fn fingerprint(message: &Message<'_>) -> String {
    let mut hasher = Sha256::new();
    let raw = message.raw_message();
    for header in message.headers() {
        if !IDENTIFYING.contains(&header.name) {
            continue;
        }
        let value = usize::try_from(header.offset_start).unwrap_or_default()
            ..usize::try_from(header.offset_end).unwrap_or_default();
        hasher.update(header.name.as_str().to_ascii_lowercase());
        hasher.update(raw.get(value).unwrap_or_default().trim_ascii());
        hasher.update([0]);
    }
    let begin = message.root_part().raw_body_offset();
    let body = raw.get(usize::try_from(begin).unwrap_or_default()..);
    // Line endings depend on how the email was transported.
    for line in body
        .unwrap_or_default()
        .trim_ascii()
        .split(|byte| *byte == b'\n')
    {
        hasher.update(line.trim_ascii_end());
        hasher.update(b"\n");
    }
    let hash = hasher.finalize();
    hash.iter()
        .take(16)
        .map(|byte| format!("{byte:02x}"))
        .collect()
}

/// Headers that do not change while an email is in a mailbox, and that a person relies on when replying.
const IDENTIFYING: [Name<'static>; 9] = [
    Name::From,
    Name::To,
    Name::Cc,
    Name::ReplyTo,
    Name::Subject,
    Name::Date,
    Name::MessageId,
    Name::InReplyTo,
    Name::References,
];

/// Maximum number of recipients read per header; [`Email::hidden`] reports how many were left out.
pub const RECIPIENTS_MAX: usize = 1_000;
/// Maximum size of an email, in bytes; [`Email::hidden`] reports that the rest was left out.
pub const MAIL_BYTES_MAX: usize = 64 << 20;
const ATTACHMENTS_MAX: usize = 1_000;
const REFERENCES_MAX: usize = 1_000;

fn limited(mut all: Vec<String>) -> (Vec<String>, usize) {
    let left_out = all.len().saturating_sub(RECIPIENTS_MAX);
    all.truncate(RECIPIENTS_MAX);
    (all, left_out)
}

fn first(address: Option<&Address<'_>>) -> String {
    list(address).into_iter().next().unwrap_or_default()
}

/// Returns the `Message-ID`s that an email names in `In-Reply-To` and `References`.
pub fn replied_to(bytes: &[u8]) -> Vec<String> {
    let message = MessageParser::default().parse_headers(bytes);
    message.map_or_else(Vec::new, |message| {
        let mut all = ids(message.in_reply_to());
        all.extend(ids(message.references()));
        all
    })
}

/// Returns when an email was sent, in Unix seconds, or `None` if it has no valid date.
pub fn sent_at(email: &Email) -> Option<i64> {
    let date = chrono::DateTime::parse_from_rfc3339(&email.date).ok()?;
    Some(date.timestamp())
}

/// An attachment of an email.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Attachment {
    /// File name.
    pub name: String,
    /// Media type; `application/octet-stream` if the email names none.
    pub kind: String,
    /// Decoded content.
    pub bytes: Vec<u8>,
}

/// Returns the attachments with these names, in the order of `names`. A name that the email does not have is an error.
pub fn attached(bytes: &[u8], names: &[String]) -> anyhow::Result<Vec<Attachment>> {
    let message = MessageParser::default().parse(bytes);
    let message = message.context("the mail cannot be read")?;
    names
        .iter()
        .map(|name| {
            let mut parts = message.attachments();
            let part = parts.find(|part| {
                let known = part.attachment_name();
                known.is_some_and(|known| known == name || html::plain(known) == *name)
            });
            let part = part.with_context(|| format!("the mail has no attachment `{name}`"))?;
            let kind = part.content_type().map(|kind| match kind.subtype() {
                Some(subtype) => format!("{}/{subtype}", kind.ctype()),
                None => kind.ctype().to_owned(),
            });
            Ok(Attachment {
                name: name.clone(),
                kind: kind.unwrap_or_else(|| "application/octet-stream".to_owned()),
                bytes: part.contents().to_vec(),
            })
        })
        .collect()
}

/// Writes an email as plain text, never HTML, so that reading it fetches nothing.
pub fn write(mail: &Outgoing) -> anyhow::Result<lettre::Message> {
    let envelope = &mail.envelope;
    let mut builder = lettre::Message::builder()
        .from(mailbox(&envelope.from)?)
        .subject(&envelope.subject)
        .message_id(Some(format!("<{}>", mail.message_id)));
    for to in &envelope.to {
        builder = builder.to(mailbox(to)?);
    }
    for cc in &envelope.cc {
        builder = builder.cc(mailbox(cc)?);
    }
    if !envelope.in_reply_to.is_empty() {
        builder = builder.in_reply_to(format!("<{}>", envelope.in_reply_to));
    }
    if !envelope.references.is_empty() {
        let all: Vec<_> = envelope
            .references
            .iter()
            .map(|id| format!("<{id}>"))
            .collect();
        builder = builder.references(all.join(" "));
    }
    // Some servers replace the Message-ID; they keep this header.
    let key = HeaderName::new_from_ascii_str(KEY_HEADER);
    builder = builder.raw_header(HeaderValue::new(key, mail.message_id.clone()));
    let text = SinglePart::builder()
        .header(ContentType::TEXT_PLAIN)
        .body(mail.text.clone());
    if mail.carried.is_empty() {
        return Ok(builder.singlepart(text)?);
    }
    let mut parts = MultiPart::mixed().singlepart(text);
    for carried in &mail.carried {
        let kind = ContentType::parse(&carried.kind)
            .unwrap_or(ContentType::parse("application/octet-stream").context("a kind of things")?);
        parts =
            parts.singlepart(Attached::new(carried.name.clone()).body(carried.bytes.clone(), kind));
    }
    Ok(builder.multipart(parts)?)
}

/// Header of sent emails with the `Message-ID` we chose, which identifies the call that sent the email.
pub const KEY_HEADER: &str = "X-Archie-Key";

fn mailbox(who: &str) -> anyhow::Result<Mailbox> {
    who.parse()
        .with_context(|| format!("`{who}` is not an address"))
}

fn plain_text(message: &Message<'_>) -> Option<String> {
    let part = message.part(*message.text_body.first()?)?;
    match &part.body {
        mail_parser::PartType::Text(text) => Some(text.to_string()),
        _ => None,
    }
}

/// Returns the HTML body, or `None` if the email only has text.
fn html_text(message: &Message<'_>) -> Option<String> {
    let part = message.part(*message.html_body.first()?)?;
    match &part.body {
        mail_parser::PartType::Html(html) => Some(html.to_string()),
        _ => None,
    }
}

fn list(address: Option<&Address<'_>>) -> Vec<String> {
    let one = |name: Option<&str>, at: &str| match name {
        Some(name) if !name.is_empty() => format!("{} <{}>", html::plain(name), html::plain(at)),
        _ => html::plain(at),
    };
    let Some(address) = address else {
        return Vec::new();
    };
    address
        .iter()
        .filter_map(|who| Some(one(who.name(), who.address()?)))
        .flat_map(|who| match who.contains('<') {
            true => vec![who],
            false => addresses(&who),
        })
        .collect()
}

fn ids(value: &Parsed<'_>) -> Vec<String> {
    match value {
        Parsed::Text(id) => vec![bare_id(&html::plain(id))],
        // Keep the last ones: they are nearest in the conversation.
        Parsed::TextList(ids) => ids[ids.len().saturating_sub(REFERENCES_MAX)..]
            .iter()
            .map(|id| bare_id(&html::plain(id)))
            .collect(),
        _ => Vec::new(),
    }
}

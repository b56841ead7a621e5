//! Mails as bytes: read from a mailbox, written for one.

use anyhow::Context;
use lettre::message::header::{ContentType, HeaderName, HeaderValue};
use lettre::message::{Attachment as Attached, Mailbox, MultiPart, SinglePart};
use mail_parser::{Address, HeaderValue as Parsed, Message, MessageParser, MimeHeaders};

use super::email::{Email, addresses, bare_id};
use super::html;
use super::mailbox::Outgoing;

/// Reads a mail. None if the bytes are no mail.
pub fn read(bytes: &[u8]) -> Option<Email> {
    let message = MessageParser::default().parse(bytes)?;
    // The words as they are, for mail-parser's own text of HTML shows what is hidden.
    let body = match message
        .text_body
        .first()
        .map(|_| ())
        .and(plain_text(&message))
    {
        Some(text) => text,
        None => message
            .body_html(0)
            .map(|html| html.into_owned())
            .unwrap_or_default(),
    };
    let seen = html::visible(&body);
    let attachments = message
        .attachments()
        .filter_map(|part| part.attachment_name())
        .map(str::to_owned);
    Some(Email {
        message_id: bare_id(message.message_id().unwrap_or_default()),
        references: ids(message.references()),
        from: list(message.from()).into_iter().next().unwrap_or_default(),
        reply_to: list(message.reply_to())
            .into_iter()
            .next()
            .unwrap_or_default(),
        to: list(message.to()),
        cc: list(message.cc()),
        subject: html::plain(message.subject().unwrap_or_default()),
        date: message
            .date()
            .map(|date| date.to_rfc3339())
            .unwrap_or_default(),
        body: seen.text,
        hidden: seen.removed,
        attachments: attachments.collect(),
        ..Email::default()
    })
}

/// When a mail was sent, in seconds; none if it does not say.
pub fn sent_at(email: &Email) -> Option<i64> {
    let date = chrono::DateTime::parse_from_rfc3339(&email.date).ok()?;
    Some(date.timestamp())
}

/// Something that a mail carries.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Carried {
    /// Its name.
    pub name: String,
    /// What kind of thing it is.
    pub kind: String,
    /// The thing.
    pub bytes: Vec<u8>,
}

/// What is attached to a mail under these names.
pub fn attached(bytes: &[u8], names: &[String]) -> anyhow::Result<Vec<Carried>> {
    let message = MessageParser::default().parse(bytes);
    let message = message.context("the mail cannot be read")?;
    names
        .iter()
        .map(|name| {
            let mut parts = message.attachments();
            let part = parts.find(|part| part.attachment_name() == Some(name));
            let part = part.with_context(|| format!("the mail has no attachment `{name}`"))?;
            let kind = part.content_type().map(|kind| match kind.subtype() {
                Some(subtype) => format!("{}/{subtype}", kind.ctype()),
                None => kind.ctype().to_owned(),
            });
            Ok(Carried {
                name: name.clone(),
                kind: kind.unwrap_or_else(|| "application/octet-stream".to_owned()),
                bytes: part.contents().to_vec(),
            })
        })
        .collect()
}

/// Writes a mail: plain text, never HTML, so that nothing in it is fetched when it is read.
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
    // Some servers put a Message-ID of their own; this they keep.
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

/// A mail that was sent says here which call sent it.
pub const KEY_HEADER: &str = "X-Archie-Key";

fn mailbox(who: &str) -> anyhow::Result<Mailbox> {
    who.parse()
        .with_context(|| format!("`{who}` is no address"))
}

fn plain_text(message: &Message<'_>) -> Option<String> {
    let id = message.text_body.first()?;
    let part = message.part(*id)?;
    // What mail-parser would make of HTML is not what a person sees.
    match &part.body {
        mail_parser::PartType::Text(text) => Some(text.to_string()),
        _ => None,
    }
}

fn list(address: Option<&Address<'_>>) -> Vec<String> {
    let one = |name: Option<&str>, at: &str| match name {
        Some(name) if !name.is_empty() => format!("{} <{at}>", html::plain(name)),
        _ => at.to_owned(),
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
        Parsed::Text(id) => vec![bare_id(id)],
        Parsed::TextList(ids) => ids.iter().map(|id| bare_id(id)).collect(),
        _ => Vec::new(),
    }
}

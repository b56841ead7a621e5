//! Mails, with the text of their HTML.

use archie_email_assistant::email::{format_gmail_markdown, parse_gmail};
use archie_email_assistant::mime;

pub(super) fn run(bytes: &[u8]) {
    let Some(mail) = mime::read(bytes) else {
        return;
    };
    assert_eq!(
        mime::read(bytes).as_ref(),
        Some(&mail),
        "it is read in two ways"
    );
    mime::sent_at(&mail);
    format_gmail_markdown(&mail);
    mail.participants();
    let input = parse_gmail(&mail.to_input());
    assert_eq!(input.message_id, mail.message_id);
    // What is attached can be fetched by the name that is shown.
    mime::attached(bytes, &mail.attachments).expect("what is listed is there");
}

//! iCalendar files.

use archie_email_assistant::calendar::ics::{read_events, write};

pub(super) fn run(bytes: &[u8]) {
    let Some(text) = super::text(bytes) else {
        return;
    };
    for event in read_events(text) {
        let written = write(&event);
        let read = read_events(&written);
        assert_eq!(read, [event], "it is another one when it is read again");
    }
}

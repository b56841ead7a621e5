//! iCalendar files.

use archie::fuzzing::{read_events, write_event};

pub(super) fn run(bytes: &[u8]) {
    let Some(text) = super::text(bytes) else {
        return;
    };
    for event in read_events(text) {
        let written = write_event(&event);
        let read = read_events(&written);
        assert_eq!(read, [event], "it is another one when it is read again");
    }
}

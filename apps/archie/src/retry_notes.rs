//! What a person reads when a call of a model failed and is made again.

/// Writes the reason of a failed call once, and then only which attempt follows.
#[derive(Debug, Default)]
pub(crate) struct RetryNotes {
    /// Reason that was written last.
    why: String,
}

impl RetryNotes {
    /// Returns the lines to print: the reason, unless the failure before had the same one, and which attempt follows.
    pub(crate) fn lines(&mut self, why: &str, attempt: u32, attempts_max: u32) -> Vec<String> {
        let mut lines = Vec::new();
        if self.why != why {
            lines.push(why.to_owned());
            why.clone_into(&mut self.why);
        }
        lines.push(match attempt {
            // A worker of an older version does not say.
            0 => "asking again".to_owned(),
            _ => format!("asking again ({attempt} of {attempts_max})"),
        });
        lines
    }
}

#[test]
fn a_reason_is_written_once() {
    let mut notes = RetryNotes::default();
    let refused = "the connection was refused";
    assert_eq!(
        notes.lines(refused, 2, 4),
        [refused, "asking again (2 of 4)"]
    );
    assert_eq!(notes.lines(refused, 3, 4), ["asking again (3 of 4)"]);
    assert_eq!(
        notes.lines("too many requests", 4, 4),
        ["too many requests", "asking again (4 of 4)"]
    );
    assert_eq!(
        notes.lines(refused, 0, 0),
        [refused, "asking again"],
        "another reason was between"
    );
}

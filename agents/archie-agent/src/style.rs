//! The look of text at a terminal: a few faces, each with a meaning, and whether they may be shown.

/// What a piece of text is. Colours follow the meaning, and no meaning is carried by a colour alone.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Face {
    /// Ordinary text.
    #[default]
    Plain,
    /// A heading, or text that its author stressed strongly.
    Bold,
    /// Text that its author stressed.
    Italic,
    /// Code, a name of a file or a command.
    Code,
    /// Something beside the matter, such as what a turn cost.
    Dim,
    /// Something failed, or was removed.
    Error,
    /// Something is well, or was added.
    Ok,
    /// Something waits for a person.
    Waiting,
}

impl Face {
    /// Returns the parameter of the escape sequence that selects this face; empty for ordinary text.
    fn code(self) -> &'static str {
        match self {
            Self::Plain => "",
            Self::Bold => "1",
            Self::Dim => "2",
            Self::Italic => "3",
            Self::Error => "31",
            Self::Ok => "32",
            Self::Waiting => "33",
            Self::Code => "36",
        }
    }
}

/// What the place where text is printed can show.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Style {
    has_colours: bool,
    is_plain: bool,
}

impl Style {
    /// Creates a style. `is_plain` is for screen readers and simple terminals: no colours, and nothing is drawn over.
    pub fn new(has_colours: bool, is_plain: bool) -> Self {
        Self {
            has_colours: has_colours && !is_plain,
            is_plain,
        }
    }

    /// Returns whether faces are shown at all.
    pub fn has_colours(self) -> bool {
        self.has_colours
    }

    /// Returns whether output must be plain lines in their order: no spinner, no screen that is drawn again, no box characters.
    pub fn is_plain(self) -> bool {
        self.is_plain
    }

    /// Returns text in a face. The caller has made the text printable.
    pub fn paint(self, face: Face, text: &str) -> String {
        match self.has_colours && face != Face::Plain && !text.is_empty() {
            true => format!("{}{text}{RESET}", self.start(face)),
            false => text.to_owned(),
        }
    }

    /// Returns the escape sequence that starts a face; empty if it is not shown.
    pub(crate) fn start(self, face: Face) -> String {
        match self.has_colours && face != Face::Plain {
            true => format!("\u{1b}[{}m", face.code()),
            false => String::new(),
        }
    }
}

/// The escape sequence that returns to ordinary text.
pub(crate) const RESET: &str = "\u{1b}[0m";

#[test]
fn faces_are_shown_only_in_colour_and_never_in_plain_mode() {
    let shown = |style: Style| style.paint(Face::Error, "no");
    assert_eq!(shown(Style::new(true, false)), "\u{1b}[31mno\u{1b}[0m");
    assert_eq!(shown(Style::new(false, false)), "no");
    assert_eq!(shown(Style::new(true, true)), "no");
    assert_eq!(Style::new(true, false).paint(Face::Plain, "no"), "no");
}

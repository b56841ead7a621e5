//! Relative paths of files, checked part by part.

use std::fmt;
use std::str::FromStr;

/// Relative path of a file of a thread: parts with `/` between them, such as `notes/orders.md`.
///
/// A path leads nowhere else and says what it shows: no part is empty, begins with a dot or a space, ends with one, or has control
/// characters, invisible characters, `\` or `:`. So there are no absolute paths, no `..` and no hidden files.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ThreadFilePath(String);

/// A text that is not the path of a file.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{path}` is not a path of a file: {why}")]
pub struct BadFilePath {
    path: String,
    why: &'static str,
}

impl ThreadFilePath {
    /// Longest path, in bytes.
    pub const BYTES_MAX: usize = 1_024;
    /// Longest part of a path, in bytes.
    pub const PART_BYTES_MAX: usize = 200;
    /// Highest number of parts.
    pub const PARTS_MAX: usize = 32;

    /// Reads a path.
    pub fn parse(text: &str) -> Result<Self, BadFilePath> {
        let refused = |why| {
            let shown = text.chars().take(SHOWN_CHARS);
            BadFilePath {
                path: shown.flat_map(char::escape_debug).collect(),
                why,
            }
        };
        if text.len() > Self::BYTES_MAX {
            return Err(refused("it is too long"));
        }
        if text.split('/').count() > Self::PARTS_MAX {
            return Err(refused("it has too many parts"));
        }
        match text.split('/').find_map(problem_of) {
            Some(why) => Err(refused(why)),
            None => Ok(Self(text.to_owned())),
        }
    }

    /// Returns the path as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Returns the parts of the path. The last one is the name of the file.
    pub fn parts(&self) -> impl Iterator<Item = &str> {
        self.0.split('/')
    }
}

fn problem_of(part: &str) -> Option<&'static str> {
    let is_edge = |c: char| c == '.' || c.is_whitespace();
    if part.is_empty() {
        Some("a part is empty")
    } else if part.len() > ThreadFilePath::PART_BYTES_MAX {
        Some("a part is too long")
    } else if part.starts_with(is_edge) || part.ends_with(is_edge) {
        Some("a part begins or ends with a dot or a space")
    } else if part.contains(['\\', ':']) {
        Some("a part has a backslash or a colon")
    } else if part.chars().any(|c| c.is_control() || is_invisible(c)) {
        Some("a part has characters that are not visible")
    } else {
        None
    }
}

/// Whether a character shows nothing, or changes how its neighbours are shown.
fn is_invisible(c: char) -> bool {
    matches!(c,
        '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{180e}' | '\u{feff}'
        | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}'
        | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e007f}')
}

impl fmt::Display for ThreadFilePath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl FromStr for ThreadFilePath {
    type Err = BadFilePath;

    fn from_str(text: &str) -> Result<Self, BadFilePath> {
        Self::parse(text)
    }
}

/// Number of characters of a refused path that an error shows.
const SHOWN_CHARS: usize = 80;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_leads_nowhere_else() {
        for path in [
            "a.md",
            "notes/orders of 2026.md",
            "src/main.rs",
            "Übersicht.xlsx",
            "a..b",
            "_",
        ] {
            assert_eq!(ThreadFilePath::parse(path).unwrap().as_str(), path);
        }
        let long = "a".repeat(201);
        let deep = "a/".repeat(32) + "a";
        for path in [
            "",
            "/",
            "/etc/passwd",
            "..",
            ".",
            "../a",
            "a/../b",
            "a/./b",
            "a//b",
            "a/",
            ".git/config",
            "a/.env",
            "a/...",
            "a ",
            " a",
            "a./b",
            "C:\\a",
            "c:a",
            "a\\..\\b",
            "a\0b",
            "a\nb",
            "a\u{202e}fdp.exe",
            "a\u{200b}",
            "\u{feff}a",
            &long,
            &deep,
        ] {
            assert!(ThreadFilePath::parse(path).is_err(), "{path:?}");
        }
        let refused = ThreadFilePath::parse("a/\u{202e}x")
            .unwrap_err()
            .to_string();
        assert!(refused.is_ascii(), "{refused}");
    }
}

//! File names and relative paths that cannot lead out of a folder.

use std::ffi::{OsStr, OsString};
use std::fmt;
use std::os::unix::ffi::OsStrExt;

/// Name of one entry of a folder: not empty, not `.` or `..`, without `/` and NUL.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FileName(OsString);

/// Path below a folder, without `..` and not absolute. An empty path is the folder itself.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RelativePath(Vec<FileName>);

/// A name that is not valid for an entry of a folder, or that would lead out of it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{}` is not a plain name or path below the folder", name.escape_debug())]
pub struct BadName {
    /// The name or path as given, with bytes that are not text replaced.
    pub name: String,
}

impl FileName {
    /// Checks a name. Fails if it is empty, `.` or `..`, or contains `/` or NUL.
    pub fn new(name: impl AsRef<OsStr>) -> Result<Self, BadName> {
        let name = name.as_ref();
        let bytes = name.as_bytes();
        let is_bad = bytes.is_empty()
            || bytes == b"."
            || bytes == b".."
            || bytes.contains(&b'/')
            || bytes.contains(&0);
        match is_bad {
            true => Err(BadName {
                name: name.to_string_lossy().into_owned(),
            }),
            false => Ok(Self(name.to_owned())),
        }
    }

    pub(super) fn from_bytes(bytes: &[u8]) -> Result<Self, BadName> {
        Self::new(OsStr::from_bytes(bytes))
    }

    /// Returns the name as the operating system represents it.
    pub fn as_os_str(&self) -> &OsStr {
        &self.0
    }

    /// Returns the name if it is valid text without control characters, so that it can be shown on one line.
    pub fn as_line(&self) -> Option<&str> {
        let text = self.0.to_str()?;
        (!text.chars().any(char::is_control)).then_some(text)
    }
}

impl fmt::Display for FileName {
    /// Writes the name on one line, with control characters escaped.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for c in self.0.to_string_lossy().chars() {
            match c.is_control() {
                true => write!(f, "{}", c.escape_default())?,
                false => write!(f, "{c}")?,
            }
        }
        Ok(())
    }
}

impl RelativePath {
    /// Returns the empty path, which is the folder itself.
    pub fn root() -> Self {
        Self::default()
    }

    /// Parses a path with `/` between its names. Fails if any name is not a valid [`FileName`].
    pub fn parse(path: impl AsRef<OsStr>) -> Result<Self, BadName> {
        let path = path.as_ref();
        let names = path.as_bytes().split(|byte| *byte == b'/');
        let names = names.map(FileName::from_bytes).collect::<Result<_, _>>();
        names.map(Self).map_err(|_| BadName {
            name: path.to_string_lossy().into_owned(),
        })
    }

    /// Returns this path with a name appended.
    pub fn join(&self, name: &FileName) -> Self {
        let mut names = self.0.clone();
        names.push(name.clone());
        Self(names)
    }

    /// Returns the names from the outermost folder to the last entry.
    pub fn names(&self) -> &[FileName] {
        &self.0
    }

    /// Returns the parent path and the last name, or `None` for the folder itself.
    pub fn split_last(&self) -> Option<(Self, &FileName)> {
        let (last, above) = self.0.split_last()?;
        Some((Self(above.to_vec()), last))
    }

    /// Returns the path as text if every name can be shown on one line, otherwise `None`.
    pub fn as_line(&self) -> Option<String> {
        let names: Option<Vec<&str>> = self.0.iter().map(FileName::as_line).collect();
        Some(names?.join("/"))
    }
}

impl From<FileName> for RelativePath {
    fn from(name: FileName) -> Self {
        Self(vec![name])
    }
}

impl fmt::Display for RelativePath {
    /// Writes the path on one line, with control characters escaped.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, name) in self.0.iter().enumerate() {
            match at {
                0 => write!(f, "{name}")?,
                _ => write!(f, "/{name}")?,
            }
        }
        Ok(())
    }
}

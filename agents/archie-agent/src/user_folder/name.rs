//! Names and paths below a folder, which cannot lead out of it.

use std::ffi::{OsStr, OsString};
use std::fmt;
use std::os::unix::ffi::OsStrExt;

/// The name of one entry of a folder: not empty, not `.` or `..`, without `/` and NUL.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FileName(OsString);

/// A path below a folder: names, and nothing that leads up or elsewhere. Without names it is the folder itself.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RelativePath(Vec<FileName>);

/// A name that no entry of a folder can have, or that would lead out of it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{}` is not a plain name or path below the folder", name.escape_debug())]
pub struct BadName {
    /// The name.
    pub name: String,
}

impl FileName {
    /// Takes a name.
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

    /// As the system has it.
    pub fn as_os_str(&self) -> &OsStr {
        &self.0
    }

    /// As text, if it is text without control characters: what can be shown on one line.
    pub fn as_line(&self) -> Option<&str> {
        let text = self.0.to_str()?;
        (!text.chars().any(char::is_control)).then_some(text)
    }
}

impl fmt::Display for FileName {
    /// On one line, whatever it holds.
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
    /// The folder itself.
    pub fn root() -> Self {
        Self::default()
    }

    /// Takes a path with `/` between its names.
    pub fn parse(path: impl AsRef<OsStr>) -> Result<Self, BadName> {
        let path = path.as_ref();
        let names = path.as_bytes().split(|byte| *byte == b'/');
        let names = names.map(FileName::from_bytes).collect::<Result<_, _>>();
        names.map(Self).map_err(|_| BadName {
            name: path.to_string_lossy().into_owned(),
        })
    }

    /// This path and a name below it.
    pub fn join(&self, name: &FileName) -> Self {
        let mut names = self.0.clone();
        names.push(name.clone());
        Self(names)
    }

    /// Its names.
    pub fn names(&self) -> &[FileName] {
        &self.0
    }

    /// The path above, and the last name; none for the folder itself.
    pub fn split_last(&self) -> Option<(Self, &FileName)> {
        let (last, above) = self.0.split_last()?;
        Some((Self(above.to_vec()), last))
    }

    /// As text, if every name can be shown on one line.
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
    /// On one line, whatever it holds.
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

//! What a suite found.

use std::fmt;

/// Which clauses hold, and why the others do not.
#[derive(Debug, Clone, Default)]
pub struct Report {
    /// The names of the clauses that hold.
    pub passed: Vec<&'static str>,
    /// The names of those that do not, each with what was seen.
    pub failed: Vec<(&'static str, String)>,
}

impl Report {
    /// For tests: nothing if every clause holds.
    ///
    /// # Panics
    /// With the list of broken clauses if one does not.
    pub fn assert(&self) {
        assert!(self.failed.is_empty(), "{self}");
    }

    /// Adds what a clause found.
    pub fn add(&mut self, name: &'static str, verdict: Verdict) {
        match verdict {
            Ok(()) => self.passed.push(name),
            Err(Fault(why)) => self.failed.push((name, why)),
        }
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let clauses = self.passed.len() + self.failed.len();
        write!(f, "{} of {clauses} clauses hold", self.passed.len())?;
        for (name, why) in &self.failed {
            write!(f, "\n  {name}: {why}")?;
        }
        Ok(())
    }
}

/// What a clause found.
pub type Verdict = Result<(), Fault>;

/// Why a clause does not hold. Any error that was not expected becomes one by `?`.
#[derive(Debug)]
pub struct Fault(String);

impl Fault {
    /// Says why, cut to 1,500 characters: a value of many kilobytes would fill the report.
    pub fn new(why: String) -> Self {
        const CHARS_MAX: usize = 1500;
        if why.chars().count() <= CHARS_MAX {
            return Self(why);
        }
        Self(why.chars().take(CHARS_MAX).chain(['…']).collect())
    }
}

impl<E: std::error::Error> From<E> for Fault {
    fn from(error: E) -> Self {
        let source = error.source().map(|source| format!(": {source}"));
        Self::new(format!("refused: {error}{}", source.unwrap_or_default()))
    }
}

/// The clause does not hold unless the condition does.
#[macro_export]
macro_rules! ensure {
    ($holds:expr, $($why:tt)+) => {
        if !$holds {
            return Err($crate::Fault::new(format!($($why)+)));
        }
    };
}

/// The clause does not hold unless what was found is what was wanted.
#[macro_export]
macro_rules! ensure_eq {
    ($found:expr, $wanted:expr, $($what:tt)+) => {
        match (&$found, &$wanted) {
            (found, wanted) if found == wanted => {}
            (found, wanted) => {
                let what = format!($($what)+);
                return Err($crate::Fault::new(format!("{what}: found {found:?}, wanted {wanted:?}")));
            }
        }
    };
}

/// The clause does not hold unless the call is refused with this error.
#[macro_export]
macro_rules! ensure_refused {
    ($result:expr, $error:pat, $($what:tt)+) => {
        match $result {
            Err($error) => {}
            other => {
                let what = format!($($what)+);
                let wanted = stringify!($error);
                return Err($crate::Fault::new(format!("{what}: found {other:?}, wanted {wanted}")));
            }
        }
    };
}

pub(crate) use {ensure, ensure_eq, ensure_refused};

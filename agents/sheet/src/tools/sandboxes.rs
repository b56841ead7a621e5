//! Creates the sandboxes on demand.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use crate::sandbox::environment;
use crate::sandbox::{Bubblewrap, Kind, NoPython, Python, Sandbox, SandboxError, Unsandboxed};

/// Sandboxes by kind, created on first use, because many runs need none.
#[derive(Debug, Default)]
pub struct Sandboxes {
    python: Option<PathBuf>,
    made: Mutex<BTreeMap<u8, Arc<dyn Sandbox>>>,
}

impl Sandboxes {
    /// Creates the sandboxes with a chosen Python, or with the default one.
    pub fn with_python(python: Option<PathBuf>) -> Self {
        Self {
            python,
            ..Self::default()
        }
    }

    /// Uses the same sandbox for every kind. For tests.
    pub fn only(sandbox: Arc<dyn Sandbox>) -> Self {
        let made = [Kind::Bubblewrap, Kind::Unsandboxed].map(|kind| (kind as u8, sandbox.clone()));
        Self {
            python: None,
            made: Mutex::new(made.into()),
        }
    }

    /// Returns whether a Python was chosen.
    pub(crate) fn has_named_python(&self) -> bool {
        self.python.is_some()
    }

    /// Returns the Python that runs the code, or what is wrong with it.
    ///
    /// If none is named and the default one lacks modules, this is the one of the environment that Archie made, if it did.
    pub fn find_python(&self) -> Result<Python, NoPython> {
        let found = Python::find(self.python.as_deref());
        match (found, environment::existing()) {
            (Err(_), Some(own)) if self.python.is_none() => Python::find(Some(&own)),
            (found, _) => found,
        }
    }

    /// Returns the sandbox of this kind, creating it on first use.
    pub fn get(&self, kind: Kind) -> Result<Arc<dyn Sandbox>, SandboxError> {
        let mut made = self.made.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(sandbox) = made.get(&(kind as u8)) {
            return Ok(sandbox.clone());
        }
        let python = self.find_python()?;
        let sandbox: Arc<dyn Sandbox> = match kind {
            Kind::Bubblewrap => Arc::new(Bubblewrap::new(python)?),
            Kind::Unsandboxed => Arc::new(Unsandboxed::new(python)),
        };
        made.insert(kind as u8, sandbox.clone());
        Ok(sandbox)
    }
}

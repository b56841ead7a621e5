//! What a model can be trusted with, as measured.

use std::collections::BTreeMap;
use std::io;
use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::private_file;

/// How much an agent leaves to a model. Chosen by what the model did when it was measured, never by its name.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ModelProfile {
    /// Does not call tools by itself, or answers without looking. Agents ask it one thing at a time, with a form.
    Small,
    /// Calls tools and looks things up. Also the profile of a model that was not measured.
    #[default]
    Medium,
    /// Like [`Medium`](Self::Medium), with room for whole documents.
    Large,
}

/// Profiles by the names of models.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct ModelProfiles(BTreeMap<String, ModelProfile>);

impl ModelProfiles {
    /// Reads the profiles from a file; there are none if the file does not exist.
    pub fn read(file: &Path) -> io::Result<Self> {
        match private_file::read(file) {
            Ok(bytes) => Ok(serde_json::from_slice(&bytes)?),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Self::default()),
            Err(error) => Err(error),
        }
    }

    /// Writes the profiles to a file.
    pub fn write(&self, file: &Path) -> io::Result<()> {
        private_file::write(file, &serde_json::to_vec_pretty(self)?)
    }

    /// Sets the profile of a model.
    pub fn set(&mut self, model: &str, profile: ModelProfile) {
        self.0.insert(model.to_owned(), profile);
    }

    /// Returns the profile of a model.
    pub fn get(&self, model: &str) -> ModelProfile {
        self.0.get(model).copied().unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn profiles_survive_a_file_and_unmeasured_models_are_medium() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("models.json");
        let mut profiles = ModelProfiles::read(&file).unwrap();
        assert_eq!(profiles.get("openai:m"), ModelProfile::Medium);
        profiles.set("openai:m", ModelProfile::Small);
        profiles.write(&file).unwrap();
        assert_eq!(ModelProfiles::read(&file).unwrap(), profiles);
        assert_eq!(
            private_file::read(&file).unwrap(),
            b"{\n  \"openai:m\": \"small\"\n}"
        );
    }
}

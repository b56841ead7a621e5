//! The store of APIs: those that a person added, and the built-in one.

use std::sync::Arc;

use anyhow::{Context, bail};
use archie_agent::clock::now;
use superstep::checkpoint::Page;
use superstep::store::{Namespace, PutItem, Search, Store};

use super::catalogue::{Catalogue, Dialect};
use super::{AUDIUS, openapi};

/// APIs by name, in the long-term store.
#[derive(Clone)]
pub struct CatalogueStore {
    store: Arc<dyn Store>,
}

impl std::fmt::Debug for CatalogueStore {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("CatalogueStore").finish_non_exhaustive()
    }
}

impl CatalogueStore {
    /// Creates a catalogue store over a long-term store.
    pub fn new(store: Arc<dyn Store>) -> Self {
        Self { store }
    }

    /// Returns the API with this name. A stored one takes precedence over the built-in one.
    pub async fn find(&self, name: &str) -> anyhow::Result<Option<Catalogue>> {
        if name_fault(name).is_some() {
            return Ok(None);
        }
        match self.store.get(&place()?, name, now()).await? {
            Some(item) => {
                let read = serde_json::from_value(item.value);
                Ok(Some(read.with_context(|| {
                    format!("the API `{name}` in the store cannot be read; add it again")
                })?))
            }
            None => Ok((name == AUDIUS).then(audius)),
        }
    }

    /// Adds an API, or replaces the one with the same name.
    pub async fn put(&self, catalogue: &Catalogue) -> anyhow::Result<()> {
        if let Some(why) = name_fault(&catalogue.name) {
            bail!("`{}` is not a name for an API: {why}", catalogue.name);
        }
        let put = PutItem {
            namespace: place()?,
            key: catalogue.name.clone(),
            value: serde_json::to_value(catalogue)?,
            ttl: None,
        };
        self.store.put(&put, now()).await?;
        Ok(())
    }

    /// Removes an API. Returns whether it was stored.
    pub async fn remove(&self, name: &str) -> anyhow::Result<bool> {
        Ok(self.store.delete(&place()?, name).await?)
    }

    /// Returns all APIs, sorted by name, including the built-in one. Reads at most 1,000 stored ones.
    pub async fn list(&self) -> anyhow::Result<Vec<Catalogue>> {
        let search = Search {
            prefix: place()?.segments().to_vec(),
            page: Page {
                limit: 1_000,
                offset: 0,
            },
            ..Search::default()
        };
        let items = self.store.search(&search, now()).await?;
        let mut found = items
            .into_iter()
            .map(|item| {
                serde_json::from_value(item.value)
                    .with_context(|| format!("the API `{}` in the store cannot be read", item.key))
            })
            .collect::<anyhow::Result<Vec<Catalogue>>>()?;
        if !found.iter().any(|catalogue| catalogue.name == AUDIUS) {
            found.push(audius());
        }
        found.sort_by(|one, other| one.name.cmp(&other.name));
        Ok(found)
    }
}

/// Returns the built-in catalogue of Audius.
pub fn audius() -> Catalogue {
    // The document is part of this crate, and a test reads it.
    let document = openapi::read(include_bytes!("audius.json"));
    let (title, hosts, apis, responses) = document
        .map(|document| {
            (
                document.title,
                document.servers,
                document.apis,
                document.responses,
            )
        })
        .unwrap_or_default();
    Catalogue {
        name: AUDIUS.to_owned(),
        title,
        hosts,
        apis,
        key: None,
        keyed: false,
        dialect: Dialect::Audius,
        responses,
    }
}

fn name_fault(name: &str) -> Option<&'static str> {
    let fits = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-' || c == '_';
    (name.is_empty() || name.len() > 40 || !name.chars().all(fits))
        .then_some("use 1 to 40 small letters, digits, - and _")
}

fn place() -> anyhow::Result<Namespace> {
    Ok(Namespace::new(["archie", "apis"])?)
}

#[cfg(test)]
mod tests {
    #[test]
    fn what_comes_with_the_program_can_be_read() {
        let audius = super::audius();
        assert_eq!(audius.apis.len(), 25);
        assert_eq!(
            audius.categories(),
            ["Playlists", "Tips", "Tracks", "Users"]
        );
        assert!(
            audius
                .hosts
                .iter()
                .any(|host| host.ends_with("discoveryprovider3.audius.co"))
        );
    }
}

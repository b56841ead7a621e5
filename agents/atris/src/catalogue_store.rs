//! The APIs that a person has added, in the long-term store, and the one that comes with the program.

use std::sync::Arc;

use anyhow::{Context, bail};
use archie_agent::clock::now;
use superstep::checkpoint::Page;
use superstep::store::{Namespace, PutItem, Search, Store};

use super::catalogue::{Catalogue, Dialect};
use super::{AUDIUS, openapi};

/// The APIs by name.
#[derive(Clone)]
pub struct CatalogueStore {
    store: Arc<dyn Store>,
}

impl std::fmt::Debug for CatalogueStore {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Shelf").finish_non_exhaustive()
    }
}

impl CatalogueStore {
    /// In a store.
    pub fn new(store: Arc<dyn Store>) -> Self {
        Self { store }
    }

    /// The API of a name.
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

    /// Adds one, or replaces it.
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

    /// Forgets one. Says whether it was there.
    pub async fn remove(&self, name: &str) -> anyhow::Result<bool> {
        Ok(self.store.delete(&place()?, name).await?)
    }

    /// All of them, by name.
    pub async fn list(&self) -> anyhow::Result<Vec<Catalogue>> {
        let search = Search {
            prefix: place()?.segments().to_vec(),
            filters: Vec::new(),
            page: Page {
                limit: 1_000,
                offset: 0,
            },
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

/// What comes with the program.
pub fn audius() -> Catalogue {
    // A file of ours, which a test reads.
    let document = openapi::read(include_bytes!("audius.json"));
    let (title, hosts, apis) = document
        .map(|document| (document.title, document.servers, document.apis))
        .unwrap_or_default();
    Catalogue {
        name: AUDIUS.to_owned(),
        title,
        hosts,
        apis,
        key: None,
        keyed: false,
        dialect: Dialect::Audius,
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

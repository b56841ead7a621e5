//! The long-term store, as nodes use it.
//!
//! A fact outlives the thread, so the labels of what the node had read when it stored the fact are stored with it, and reading
//! the fact notes them again. Otherwise a node could lose the label of a secret by storing it and reading it back.

use std::fmt;
use std::sync::Arc;

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value as Json, json};

use crate::checkpoint::Page;
use crate::error::NodeError;
use crate::ids::Timestamp;
use crate::label::Labels;
use crate::node::NodeCx;
use crate::store::{Namespace, PutItem, Search, Store, Ttl};
use crate::value::Value;

/// One namespace of the long-term store: facts that outlive the thread. See [`NodeCx::store`].
#[derive(Clone)]
pub struct NodeStore {
    cx: NodeCx,
    namespace: Namespace,
    ttl: Option<Ttl>,
}

impl NodeCx {
    /// Returns a namespace of the long-term store that the runtime was built with, in the part of it that belongs to the tenant of
    /// the thread. Fails if the runtime was built without a store, or if this is not a [namespace](Namespace).
    ///
    /// ```
    /// # use superstep_core::{NodeCx, NodeError};
    /// # use serde::{Deserialize, Serialize};
    /// #[derive(Serialize, Deserialize)]
    /// struct Preference {
    ///     language: String,
    /// }
    ///
    /// async fn language_of(user: &str, cx: &NodeCx) -> Result<Option<String>, NodeError> {
    ///     let preferences = cx.store(["preferences", user])?;
    ///     let stored: Option<Preference> = preferences.get("mail").await?;
    ///     Ok(stored.map(|preference| preference.language))
    /// }
    /// ```
    ///
    /// Writes take effect at once and are not part of the superstep: a node that runs again writes again. Put what must happen
    /// once into a [step](Self::step).
    #[doc(alias = "get_store")]
    pub fn store<T: Into<String>>(
        &self,
        namespace: impl IntoIterator<Item = T>,
    ) -> Result<NodeStore, NodeError> {
        let tenant = self.thread().tenant();
        let namespace = Namespace::of_tenant(tenant, namespace).map_err(NodeError::fatal)?;
        let store = NodeStore {
            cx: self.clone(),
            namespace,
            ttl: None,
        };
        store.host_store()?;
        Ok(store)
    }
}

impl NodeStore {
    /// Makes items that are stored through this expire this long after they were last stored.
    #[must_use]
    pub fn with_ttl(mut self, ttl: Ttl) -> Self {
        self.ttl = Some(ttl);
        self
    }

    /// Returns the value under a key; `None` if the key has no value. Fails if the value does not fit the type.
    pub async fn get<T: DeserializeOwned>(&self, key: &str) -> Result<Option<T>, NodeError> {
        let (store, now) = self.host_store()?;
        let item = store.get(&self.namespace, key, now).await?;
        item.map(|item| self.read(key, item.value)).transpose()
    }

    /// Stores a value, and replaces the one under its key.
    pub async fn put(&self, key: &str, value: impl Serialize) -> Result<(), NodeError> {
        let (store, now) = self.host_store()?;
        let plain = Value::plain(&value).and_then(|value| value.decode());
        let json = plain.map_err(NodeError::fatal)?;
        let put = PutItem {
            namespace: self.namespace.clone(),
            key: key.to_owned(),
            value: with_labels(json, &self.cx.read_so_far()),
            ttl: self.ttl,
        };
        put.check().map_err(NodeError::fatal)?;
        Ok(store.put(&put, now).await?)
    }

    /// Deletes an item. Returns whether it existed.
    pub async fn delete(&self, key: &str) -> Result<bool, NodeError> {
        let (store, _) = self.host_store()?;
        Ok(store.delete(&self.namespace, key).await?)
    }

    /// Returns at most `limit` keys and values of this namespace and those below it, most recently changed first.
    pub async fn list<T: DeserializeOwned>(
        &self,
        limit: u32,
    ) -> Result<Vec<(String, T)>, NodeError> {
        let (store, now) = self.host_store()?;
        let search = Search {
            tenant: self.namespace.tenant().to_owned(),
            prefix: self.namespace.segments().to_vec(),
            filters: Vec::new(),
            page: Page { offset: 0, limit },
        };
        let items = store.search(&search, now).await?.into_iter();
        items
            .map(|item| Ok((item.key.clone(), self.read(&item.key, item.value)?)))
            .collect()
    }

    /// Returns the namespace.
    pub fn namespace(&self) -> &Namespace {
        &self.namespace
    }

    /// Returns the store of the thread's tenant, for what this type does not offer. It neither stores nor notes labels.
    pub fn inner(&self) -> Result<Arc<dyn Store>, NodeError> {
        Ok(self.host_store()?.0)
    }

    fn host_store(&self) -> Result<(Arc<dyn Store>, Timestamp), NodeError> {
        self.cx.host_store().ok_or_else(|| {
            NodeError::fatal(
                "this runtime has no long-term store; build it with `Runtime::builder(..).store(..)`",
            )
        })
    }

    fn read<T: DeserializeOwned>(&self, key: &str, stored: Json) -> Result<T, NodeError> {
        let (value, labels) = without_labels(stored)?;
        self.cx.note_read(&labels);
        serde_json::from_value(value).map_err(|error| {
            let namespace = self.namespace.segments().join("/");
            NodeError::fatal(format!(
                "the item `{key}` in `{namespace}` does not fit what the node expects: {error}"
            ))
        })
    }
}

/// Names of the fields of a stored value that has labels. A value without labels is stored as it is.
const LABELS: &str = "__labels";
const VALUE: &str = "__value";

fn with_labels(value: Json, labels: &Labels) -> Json {
    // A value that looks like one with labels gets them too, so that it reads back as it was.
    match labels.is_empty() && !has_labels(&value) {
        true => value,
        false => json!({ LABELS: labels, VALUE: value }),
    }
}

fn has_labels(value: &Json) -> bool {
    let fields = value.as_object();
    fields.is_some_and(|f| f.len() == 2 && f.contains_key(LABELS) && f.contains_key(VALUE))
}

fn without_labels(mut stored: Json) -> Result<(Json, Labels), NodeError> {
    if !has_labels(&stored) {
        return Ok((stored, Labels::NONE));
    }
    let labels = serde_json::from_value(stored[LABELS].take()).map_err(NodeError::fatal)?;
    Ok((stored[VALUE].take(), labels))
}

impl fmt::Debug for NodeStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("NodeStore")
            .field("namespace", &self.namespace)
            .finish_non_exhaustive()
    }
}

//! The memory file: what is known about a system, as JSON that a person can read, edit and keep under version control.
//!
//! ```json
//! {"entities": [{"name": "orders", "type": "service", "description": "Takes orders."}],
//!  "relationships": [{"from": "orders", "to": "PostgreSQL", "type": "stores in"}]}
//! ```
//!
//! Entities are merged by name, relationships by their ends and type. A relationship to an entity that is not there is refused.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use anyhow::{Context, bail};
use archie_agent::user_folder::{Access, read_named_file, write_named_file};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::final_output::CLAIMS_MAX;
use super::terms::beginning;

/// What is known, as the file holds it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Memory {
    /// Things that the notes are about.
    #[serde(default)]
    #[schemars(length(max = 12))]
    pub entities: Vec<Entity>,
    /// What they have to do with each other.
    #[serde(default)]
    #[schemars(length(max = 12))]
    pub relationships: Vec<Relationship>,
}

/// A thing that the notes are about, such as a service, a team or a rule.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Entity {
    /// Its name, which identifies it in any case of letters.
    #[schemars(length(max = 80))]
    pub name: String,
    /// What kind of thing it is.
    #[serde(default, rename = "type")]
    #[schemars(length(max = 40))]
    pub kind: String,
    /// What is known about it, in a sentence.
    #[serde(default)]
    #[schemars(length(max = 240))]
    pub description: String,
}

/// What one entity has to do with another.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Relationship {
    /// Name of the first entity.
    #[schemars(length(max = 80))]
    pub from: String,
    /// Name of the second entity.
    #[schemars(length(max = 80))]
    pub to: String,
    /// What connects them, such as `uses`.
    #[serde(default, rename = "type")]
    #[schemars(length(max = 40))]
    pub kind: String,
}

/// What a merge did.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Merged {
    /// Number of new entities and relationships.
    pub added: usize,
    /// Number of entities whose type or description changed.
    pub changed: usize,
    /// Relationships that were refused because an end is not an entity.
    pub refused: Vec<Relationship>,
}

impl Memory {
    /// Reads a memory file. A file that does not exist is an empty memory.
    pub fn read(path: &Path) -> anyhow::Result<Self> {
        let bytes = match read_named_file(path, MEMORY_BYTES_MAX) {
            Ok(bytes) => bytes,
            Err(error) if error.is_missing() => return Ok(Self::default()),
            Err(error) => {
                return Err(error).with_context(|| {
                    format!("the memory file `{}` cannot be read", path.display())
                });
            }
        };
        let read: Self = serde_json::from_slice(&bytes).with_context(|| {
            format!(
                "`{}` is not a memory file: it must be JSON with `entities` and `relationships`",
                path.display()
            )
        })?;
        let mut memory = Self::default();
        let merged = memory.merge(read);
        if let Some(unknown) = merged.refused.first() {
            bail!(
                "`{}` has a relationship from `{}` to `{}`, but not both entities; add the missing one or remove the relationship",
                path.display(),
                unknown.from,
                unknown.to
            );
        }
        Ok(memory)
    }

    /// Writes the memory file as a whole or not at all. Refuses to write a file that [`Self::read`] would refuse as too large.
    pub fn write(&self, path: &Path) -> anyhow::Result<()> {
        let mut text = serde_json::to_string_pretty(self)?;
        text.push('\n');
        if text.len() as u64 > MEMORY_BYTES_MAX {
            bail!(
                "the memory file `{}` would have {} bytes, more than the limit of {MEMORY_BYTES_MAX}; remove entities from it first",
                path.display(),
                text.len()
            );
        }
        write_named_file(path, text.as_bytes(), Access::Shared)
            .with_context(|| format!("the memory file `{}` cannot be written", path.display()))
    }

    /// Adds what `other` knows: entities by name, where a longer description replaces a shorter one, and relationships by their
    /// ends and type.
    pub fn merge(&mut self, other: Self) -> Merged {
        let mut merged = Merged::default();
        let mut places: BTreeMap<String, usize> = BTreeMap::new();
        for (at, entity) in self.entities.iter().enumerate() {
            places.insert(key(&entity.name), at);
        }
        for entity in other.entities {
            let name = key(&entity.name);
            if name.is_empty() {
                continue;
            }
            match places.get(&name) {
                Some(at) => {
                    let known = &mut self.entities[*at];
                    let before = known.clone();
                    if entity.description.len() > known.description.len() {
                        known.description = entity.description;
                    }
                    if known.kind.is_empty() {
                        known.kind = entity.kind;
                    }
                    merged.changed += usize::from(*known != before);
                }
                None => {
                    places.insert(name, self.entities.len());
                    self.entities.push(entity);
                    merged.added += 1;
                }
            }
        }
        let known = self.relationships.iter().map(Relationship::identity);
        let mut known: BTreeSet<_> = known.collect();
        for relationship in other.relationships {
            let ends = [key(&relationship.from), key(&relationship.to)];
            if !ends.iter().all(|end| places.contains_key(end)) {
                merged.refused.push(relationship);
                continue;
            }
            if known.insert(relationship.identity()) {
                self.relationships.push(relationship);
                merged.added += 1;
            }
        }
        merged
    }

    /// Cuts the lists and texts of a model's answer; a server may ignore the schema.
    pub(super) fn cut(&mut self) {
        self.entities.truncate(CLAIMS_MAX);
        self.relationships.truncate(CLAIMS_MAX);
        for entity in &mut self.entities {
            cut(&mut entity.name, NAME_CHARS);
            cut(&mut entity.kind, KIND_CHARS);
            cut(&mut entity.description, DESCRIPTION_CHARS);
        }
        for relationship in &mut self.relationships {
            cut(&mut relationship.from, NAME_CHARS);
            cut(&mut relationship.to, NAME_CHARS);
            cut(&mut relationship.kind, KIND_CHARS);
        }
    }

    /// Returns the memory as a note for the model; empty if nothing is known.
    pub fn as_note(&self) -> String {
        let mut text = String::new();
        for Entity {
            name,
            kind,
            description,
        } in &self.entities
        {
            text.push_str(&format!("{name} ({kind}): {description}\n"));
        }
        for Relationship { from, to, kind } in &self.relationships {
            text.push_str(&format!("{from} {kind} {to}\n"));
        }
        text
    }
}

impl Relationship {
    fn identity(&self) -> [String; 3] {
        [key(&self.from), key(&self.to), key(&self.kind)]
    }
}

fn key(name: &str) -> String {
    name.trim().to_lowercase()
}

fn cut(text: &mut String, chars_max: usize) {
    let end = beginning(text, chars_max).len();
    text.truncate(end);
}

const MEMORY_BYTES_MAX: u64 = 1 << 20;
/// As the schema says.
const NAME_CHARS: usize = 80;
const KIND_CHARS: usize = 40;
const DESCRIPTION_CHARS: usize = 240;

#[cfg(test)]
mod tests {
    use super::*;

    fn memory(text: &str) -> Memory {
        serde_json::from_str(text).unwrap()
    }

    #[test]
    fn entities_merge_by_name_and_relationships_by_their_ends_and_type() {
        let mut known = memory(
            r#"{"entities": [{"name": "Orders", "type": "service", "description": "Takes orders."}, {"name": "PostgreSQL"}],
                "relationships": [{"from": "Orders", "to": "PostgreSQL", "type": "stores in"}]}"#,
        );
        let merged = known.merge(memory(
            r#"{"entities": [{"name": "orders ", "type": "team", "description": "Takes orders, ten thousand a day."}, {"name": "Mara"}],
                "relationships": [
                    {"from": "orders", "to": "postgresql", "type": "Stores in"},
                    {"from": "Mara", "to": "Orders", "type": "runs"},
                    {"from": "Orders", "to": "Kafka", "type": "uses"}
                ]}"#,
        ));
        assert_eq!((merged.added, merged.changed), (2, 1));
        assert_eq!(merged.refused.len(), 1, "Kafka is not an entity");
        assert_eq!(known.entities.len(), 3);
        assert_eq!(known.entities[0].kind, "service");
        assert_eq!(
            known.entities[0].description,
            "Takes orders, ten thousand a day."
        );
        assert_eq!(known.relationships.len(), 2);
        let again = known.clone();
        assert_eq!(known.merge(again.clone()), Merged::default());
        assert_eq!(known, again);
        assert!(known.as_note().contains("Mara runs Orders\n"));
    }

    #[test]
    fn an_answer_that_ignores_the_schema_is_cut_and_a_memory_that_is_too_large_is_not_written() {
        let name = "ä".repeat(100);
        let entity = Entity {
            name: name.clone(),
            kind: name.clone(),
            description: name.repeat(3),
        };
        let relationship = Relationship {
            from: name.clone(),
            to: name.clone(),
            kind: name,
        };
        let mut memory = Memory {
            entities: vec![entity; CLAIMS_MAX + 1],
            relationships: vec![relationship; CLAIMS_MAX + 1],
        };
        memory.cut();
        assert_eq!(memory.entities.len(), CLAIMS_MAX);
        assert_eq!(memory.relationships.len(), CLAIMS_MAX);
        assert_eq!(memory.entities[0].name.chars().count(), 80);
        assert_eq!(memory.entities[0].description.chars().count(), 240);
        let mut merged = Memory::default();
        assert_eq!(merged.merge(memory).added, 2);
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("memory.json");
        merged.entities[0].description = "x".repeat(1 << 20);
        let error = merged.write(&path).unwrap_err();
        assert!(error.to_string().contains("limit"), "{error:?}");
        assert!(!path.exists());
    }

    #[test]
    fn a_memory_file_is_read_written_and_refused_with_a_reason() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("memory.json");
        assert_eq!(Memory::read(&path).unwrap(), Memory::default());
        let known = memory(r#"{"entities": [{"name": "a"}]}"#);
        known.write(&path).unwrap();
        assert_eq!(Memory::read(&path).unwrap(), known);
        for (text, why) in [
            ("3", "must be JSON with `entities`"),
            (
                r#"{"relationships": [{"from": "a", "to": "b"}]}"#,
                "not both entities",
            ),
        ] {
            std::fs::write(&path, text).unwrap();
            let error = Memory::read(&path).unwrap_err();
            assert!(error.to_string().contains(why), "{error:?}");
        }
    }
}

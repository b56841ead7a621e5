//! Names: the wire name of a Rust field, and which method names of the update type are taken.

use std::collections::BTreeMap;

use proc_macro2::Span;
use syn::ext::IdentExt;
use syn::{Ident, LitStr};

use crate::parse::{Field, Model};

/// A rule that converts the Rust names of fields into wire names.
#[derive(Clone, Copy)]
pub(crate) enum Case {
    Snake,
    Camel,
    Pascal,
    ScreamingSnake,
}

impl Case {
    /// Parses the value of `rename_all`.
    pub(crate) fn parse(text: &LitStr) -> syn::Result<Self> {
        match text.value().as_str() {
            "snake_case" => Ok(Case::Snake),
            "camelCase" => Ok(Case::Camel),
            "PascalCase" => Ok(Case::Pascal),
            "SCREAMING_SNAKE_CASE" => Ok(Case::ScreamingSnake),
            other => Err(syn::Error::new(
                text.span(),
                format!(
                    "`{other}` is not a way to write channel names; \
                     use `camelCase`, `PascalCase`, `snake_case` or `SCREAMING_SNAKE_CASE`"
                ),
            )),
        }
    }

    /// Returns the wire name of a field that does not set one.
    pub(crate) fn wire_name(self, field: &Ident) -> String {
        let rust = field.unraw().to_string();
        match self {
            Case::Snake => rust,
            Case::ScreamingSnake => rust.to_ascii_uppercase(),
            Case::Pascal => rust.split('_').map(capitalized).collect(),
            Case::Camel => uncapitalized(&rust.split('_').map(capitalized).collect::<String>()),
        }
    }
}

fn capitalized(word: &str) -> String {
    let Some(first) = word.get(..1) else {
        return word.to_owned();
    };
    first.to_ascii_uppercase() + &word[1..]
}

fn uncapitalized(word: &str) -> String {
    let Some(first) = word.get(..1) else {
        return word.to_owned();
    };
    first.to_ascii_lowercase() + &word[1..]
}

/// Refuses a wire name that is not an identifier: a `=` prefix marks an overwrite, and readers of the JSON expect a plain key.
pub(crate) fn check_wire_name(name: &str, span: Span) -> syn::Result<()> {
    let mut chars = name.chars();
    let begins_well = chars
        .next()
        .is_some_and(|c| c.is_ascii_alphabetic() || c == '_');
    if begins_well && chars.all(|c| c.is_ascii_alphanumeric() || c == '_') {
        return Ok(());
    }
    let shown = if name.is_empty() {
        "an empty text".to_owned()
    } else {
        format!("`{name}`")
    };
    let text = format!(
        "{shown} cannot be the name of a channel: use letters, digits and `_`, and do not begin with a digit; \
         `#[state(name = \"..\")]` gives the channel another name"
    );
    Err(syn::Error::new(span, text))
}

/// Refuses two channels with the same wire name, and a channel that is also listed as removed.
pub(crate) fn check_wire_names_differ(model: &Model) -> syn::Result<()> {
    let mut owners = BTreeMap::<&str, &Ident>::new();
    let mut faults = Faults::default();
    for field in &model.fields {
        if let Some(owner) = owners.insert(&field.wire, &field.ident) {
            let text = format!(
                "two channels are named `{}`: `{owner}` and `{}`; give one of them another `#[state(name = \"..\")]`",
                field.wire, field.ident
            );
            faults.add(syn::Error::new(field.wire_span, text));
        }
    }
    for removed in &model.removed {
        if let Some(owner) = owners.get(removed.value().as_str()) {
            let text = format!(
                "`{}` is still a channel, of field `{owner}`; do not list it as removed",
                removed.value()
            );
            faults.add(syn::Error::new(removed.span(), text));
        }
    }
    faults.or(())
}

/// Refuses fields whose methods on the update type would collide, or would hide an existing one.
pub(crate) fn check_methods_differ(model: &Model) -> syn::Result<()> {
    let mut owners = BTreeMap::<String, &Ident>::new();
    let mut faults = Faults::default();
    for field in &model.fields {
        for method in field.methods() {
            if TAKEN.contains(&method.as_str()) {
                faults.add(hides_method(model, field, &method));
            } else if let Some(owner) = owners.insert(method.clone(), &field.ident) {
                faults.add(collides(field, owner, &method));
            }
        }
    }
    faults.or(())
}

fn hides_method(model: &Model, field: &Field, method: &str) -> syn::Error {
    let text = format!(
        "the field `{method}` would hide `{method}()` of the update type `{}`; \
         call the field something else and keep its wire name with `#[state(name = \"{}\")]`",
        model.update, field.wire
    );
    syn::Error::new(field.ident.span(), text)
}

fn collides(field: &Field, owner: &Ident, method: &str) -> syn::Error {
    let text = format!(
        "the fields `{owner}` and `{}` both need a method `{method}` on the update type; \
         rename one of them and keep its wire name with `#[state(name = \"..\")]`",
        field.ident
    );
    syn::Error::new(field.ident.span(), text)
}

/// Methods that create an update, copy it, and convert it to a command.
const TAKEN: [&str; 3] = ["default", "clone", "into"];

/// Every problem found so far, so that the user sees them all at once.
#[derive(Default)]
pub(crate) struct Faults(Option<syn::Error>);

impl Faults {
    pub(crate) fn add(&mut self, fault: syn::Error) {
        match &mut self.0 {
            Some(faults) => faults.combine(fault),
            None => self.0 = Some(fault),
        }
    }

    /// Returns the value, or records the problem.
    pub(crate) fn note<T>(&mut self, result: syn::Result<T>) -> Option<T> {
        result.map_err(|fault| self.add(fault)).ok()
    }

    /// Returns the value if there was no problem.
    pub(crate) fn or<T>(self, value: T) -> syn::Result<T> {
        match self.0 {
            Some(faults) => Err(faults),
            None => Ok(value),
        }
    }
}

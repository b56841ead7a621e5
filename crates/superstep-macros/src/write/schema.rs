//! `State::schema`: the JSON Schema of the state, from how the types of its fields are written.
//!
//! A macro sees the name of a type and not the type, so a type that it does not know has the schema of any value.

use proc_macro2::TokenStream;
use quote::quote;
use syn::{Path, Type};

use crate::parse::{Field, Kind, Model, name_and_arguments};

pub(super) fn schema(model: &Model) -> TokenStream {
    let krate = &model.krate;
    let title = model.ident.to_string();
    let shown = model.fields.iter().filter(|field| is_shown(field));
    let fields = shown.map(|field| {
        let Field { wire, doc, .. } = field;
        let schema = of_field(krate, field);
        quote!(.field(#wire, #schema, #doc))
    });
    quote! {
        fn schema() -> #krate::__private::serde_json::Value {
            #krate::state::StateSchema::new(#title) #(#fields)* .finish()
        }
    }
}

/// Whether a field is part of what is stored between supersteps.
fn is_shown(field: &Field) -> bool {
    !matches!(field.kind, Kind::Ephemeral | Kind::Untracked)
}

fn of_field(krate: &Path, field: &Field) -> TokenStream {
    match field.kind {
        // What a message looks like is up to its type.
        Kind::Messages(_) => list(krate, &named(krate, "object")),
        _ => of_type(krate, &field.ty),
    }
}

fn of_type(krate: &Path, ty: &Type) -> TokenStream {
    if let Type::Reference(reference) = ty {
        return of_type(krate, &reference.elem);
    }
    let any = || quote!(#krate::state::StateSchema::any());
    let Some((name, arguments)) = name_and_arguments(ty) else {
        return any();
    };
    match (name.to_string().as_str(), arguments.as_slice()) {
        ("String" | "str" | "char", []) => named(krate, "string"),
        ("bool", []) => named(krate, "boolean"),
        ("f32" | "f64", []) => named(krate, "number"),
        (name, []) if INTEGERS.contains(&name) => named(krate, "integer"),
        ("Vec" | "VecDeque" | "BTreeSet" | "HashSet", [item]) => list(krate, &of_type(krate, item)),
        ("Option", [value]) => {
            let value = of_type(krate, value);
            quote!(#krate::state::StateSchema::nullable(#value))
        }
        ("BTreeMap" | "HashMap", [key, value]) if is_string(key) => {
            let value = of_type(krate, value);
            quote!(#krate::state::StateSchema::map(#value))
        }
        _ => any(),
    }
}

const INTEGERS: [&str; 12] = [
    "i8", "i16", "i32", "i64", "i128", "isize", "u8", "u16", "u32", "u64", "u128", "usize",
];

fn is_string(ty: &Type) -> bool {
    name_and_arguments(ty).is_some_and(|(name, arguments)| name == "String" && arguments.is_empty())
}

fn named(krate: &Path, json_type: &str) -> TokenStream {
    quote!(#krate::state::StateSchema::of(#json_type))
}

fn list(krate: &Path, item: &TokenStream) -> TokenStream {
    quote!(#krate::state::StateSchema::list(#item))
}

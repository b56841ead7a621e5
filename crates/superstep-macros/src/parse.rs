//! From a struct and its `#[state(..)]` attributes to a [`Model`], or to every problem at once.
//!
//! Nothing here writes code, and nothing after this can fail.

use proc_macro2::Span;
use quote::format_ident;
use syn::ext::IdentExt;
use syn::meta::ParseNestedMeta;
use syn::spanned::Spanned;
use syn::{
    Data, DeriveInput, ExprPath, Fields, FieldsNamed, GenericArgument, Ident, LitInt, LitStr, Path,
    PathArguments, Type, Visibility,
};

use crate::names::{self, Case, Faults};

/// A state, as the derive understands it.
pub(crate) struct Model {
    pub(crate) vis: Visibility,
    pub(crate) ident: Ident,
    /// Name of the update type.
    pub(crate) update: Ident,
    /// Path under which the generated code finds Superstep.
    pub(crate) krate: Path,
    pub(crate) version: u32,
    pub(crate) migrate: Option<ExprPath>,
    pub(crate) check: Option<ExprPath>,
    /// Wire names that old data may have and that are ignored.
    pub(crate) removed: Vec<LitStr>,
    pub(crate) fields: Vec<Field>,
}

/// One field, and so one channel.
pub(crate) struct Field {
    pub(crate) ident: Ident,
    pub(crate) ty: Type,
    pub(crate) kind: Kind,
    pub(crate) wire: String,
    /// Where the wire name was set: the attribute, or the field.
    pub(crate) wire_span: Span,
    /// The doc comment; empty if there is none.
    pub(crate) doc: String,
}

/// What a write to the channel does. A list kind has the type of its items.
pub(crate) enum Kind {
    Last,
    Append(Type),
    Messages(Type),
    Reduce(ExprPath),
    Topic(Type),
    Ephemeral,
    Untracked,
}

impl Field {
    /// Returns the type of the items, if writes add items.
    pub(crate) fn item(&self) -> Option<&Type> {
        match &self.kind {
            Kind::Append(item) | Kind::Messages(item) | Kind::Topic(item) => Some(item),
            Kind::Last | Kind::Reduce(_) | Kind::Ephemeral | Kind::Untracked => None,
        }
    }

    /// Returns the field of the update that replaces the whole channel; `None` if a plain write already does.
    pub(crate) fn overwrite(&self) -> Option<Ident> {
        match self.kind {
            Kind::Append(_) | Kind::Messages(_) | Kind::Topic(_) | Kind::Reduce(_) => {
                Some(format_ident!("overwrite_{}", self.ident))
            }
            Kind::Last | Kind::Ephemeral | Kind::Untracked => None,
        }
    }

    /// Returns the name of the overwrite in stored data.
    pub(crate) fn overwrite_wire(&self) -> String {
        format!("={}", self.wire)
    }

    /// Returns the names of the methods that this field adds to the update type.
    pub(crate) fn methods(&self) -> Vec<String> {
        let rust = self.ident.unraw().to_string();
        let mut methods = vec![format!("written_{rust}")];
        methods.extend(self.item().map(|_| format!("{rust}_all")));
        if let Some(overwrite) = self.overwrite() {
            methods.extend([overwrite.to_string(), format!("overwritten_{rust}")]);
        }
        methods.extend(matches!(self.kind, Kind::Messages(_)).then(|| format!("remove_{rust}")));
        methods.push(rust);
        methods
    }
}

/// Parses the whole derive input.
pub(crate) fn model(input: &DeriveInput) -> syn::Result<Model> {
    let named = &named_fields(input)?.named;
    let mut faults = Faults::default();
    if !input.generics.params.is_empty() {
        faults.add(generic(input));
    }
    let attributes = faults
        .note(StructAttributes::parse(input))
        .unwrap_or_default();
    if let Some(field) = named.iter().nth(CHANNELS_MAX) {
        faults.add(too_many(field, named.len()));
    }
    let case = attributes.rename_all.unwrap_or(Case::Snake);
    let fields = named
        .iter()
        .filter_map(|field| faults.note(Field::parse(field, case)))
        .collect();
    let model = attributes.into_model(input, fields);
    faults.note(names::check_wire_names_differ(&model));
    faults.note(names::check_methods_differ(&model));
    faults.or(model)
}

const CHANNELS_MAX: usize = 64;

/// Returns the fields, if this is a struct with named fields.
fn named_fields(input: &DeriveInput) -> syn::Result<&FieldsNamed> {
    match &input.data {
        Data::Struct(data) => match &data.fields {
            Fields::Named(named) => Ok(named),
            Fields::Unnamed(fields) => {
                let text =
                    "a channel needs a name: the state of a graph is a struct with named fields";
                Err(syn::Error::new(fields.span(), text))
            }
            Fields::Unit => {
                let text = format!(
                    "a state without channels is written `struct {} {{}}`",
                    input.ident
                );
                Err(syn::Error::new(input.ident.span(), text))
            }
        },
        Data::Enum(data) => Err(not_a_struct(input, "an enum", data.enum_token.span)),
        Data::Union(data) => Err(not_a_struct(input, "a union", data.union_token.span)),
    }
}

fn not_a_struct(input: &DeriveInput, what: &str, keyword: Span) -> syn::Error {
    let text = format!(
        "the state of a graph is a struct with one field per channel; \
         `{}` is {what}, which can be the type of a field",
        input.ident
    );
    syn::Error::new(keyword, text)
}

fn generic(input: &DeriveInput) -> syn::Error {
    let text = format!(
        "the state of a graph is stored and read back as one known type, so `{}` cannot be generic; \
         name the types and drop the parameters",
        input.ident
    );
    syn::Error::new_spanned(&input.generics.params, text)
}

fn too_many(first_beyond: &syn::Field, count: usize) -> syn::Error {
    let text = format!(
        "a state has at most {CHANNELS_MAX} channels and this one has {count}; group some of them in a struct of their own"
    );
    syn::Error::new_spanned(first_beyond, text)
}

/// The content of `#[state(..)]` on the struct.
#[derive(Default)]
struct StructAttributes {
    version: Option<u32>,
    rename_all: Option<Case>,
    migrate: Option<ExprPath>,
    check: Option<ExprPath>,
    krate: Option<Path>,
    removed: Vec<LitStr>,
}

impl StructAttributes {
    fn parse(input: &DeriveInput) -> syn::Result<Self> {
        let mut found = Self::default();
        for attribute in input
            .attrs
            .iter()
            .filter(|attribute| attribute.path().is_ident("state"))
        {
            attribute.parse_nested_meta(|meta| found.take(&meta))?;
        }
        Ok(found)
    }

    fn take(&mut self, meta: &ParseNestedMeta<'_>) -> syn::Result<()> {
        match key(meta).as_str() {
            "version" => once(&mut self.version, meta, || {
                meta.value()?.parse::<LitInt>()?.base10_parse()
            }),
            "rename_all" => once(&mut self.rename_all, meta, || {
                Case::parse(&meta.value()?.parse()?)
            }),
            "migrate" => once(&mut self.migrate, meta, || function(meta)),
            "check" => once(&mut self.check, meta, || function(meta)),
            "crate" => once(&mut self.krate, meta, || {
                meta.value()?.call(Path::parse_mod_style)
            }),
            "removed" => self.take_removed(meta),
            other => Err(meta.error(unknown_on_struct(other))),
        }
    }

    fn take_removed(&mut self, meta: &ParseNestedMeta<'_>) -> syn::Result<()> {
        let names;
        syn::parenthesized!(names in meta.input);
        for name in names.parse_terminated(|input| input.parse::<LitStr>(), syn::Token![,])? {
            names::check_wire_name(&name.value(), name.span())?;
            if self
                .removed
                .iter()
                .any(|other| other.value() == name.value())
            {
                return Err(syn::Error::new(
                    name.span(),
                    format!("`{}` is removed twice", name.value()),
                ));
            }
            self.removed.push(name);
        }
        Ok(())
    }

    fn into_model(self, input: &DeriveInput, fields: Vec<Field>) -> Model {
        Model {
            vis: input.vis.clone(),
            ident: input.ident.clone(),
            update: format_ident!("{}Update", input.ident),
            krate: self.krate.unwrap_or_else(|| syn::parse_quote!(::superstep)),
            version: self.version.unwrap_or(1),
            migrate: self.migrate,
            check: self.check,
            removed: self.removed,
            fields,
        }
    }
}

fn unknown_on_struct(found: &str) -> String {
    let keys = "`version`, `rename_all`, `migrate`, `check`, `removed(..)` and `crate`";
    if KINDS.contains(&found) || found == "name" {
        format!("`{found}` is for one field; the struct takes {keys}")
    } else {
        format!("a state has no setting `{found}`; the struct takes {keys}")
    }
}

impl Field {
    fn parse(field: &syn::Field, case: Case) -> syn::Result<Self> {
        let Some(ident) = &field.ident else {
            return Err(syn::Error::new(field.span(), "a channel needs a name"));
        };
        let mut found = FieldAttributes::default();
        for attribute in field
            .attrs
            .iter()
            .filter(|attribute| attribute.path().is_ident("state"))
        {
            attribute.parse_nested_meta(|meta| found.take(&meta, &field.ty))?;
        }
        let (wire, wire_span) = match &found.name {
            Some(name) => (name.value(), name.span()),
            None => (case.wire_name(ident), ident.span()),
        };
        names::check_wire_name(&wire, wire_span)?;
        let kind = found.kind.map_or(Kind::Last, |(_, kind)| kind);
        Ok(Self {
            ident: ident.clone(),
            ty: field.ty.clone(),
            kind,
            wire,
            wire_span,
            doc: crate::tool::description(&field.attrs),
        })
    }
}

/// The content of `#[state(..)]` on a field.
#[derive(Default)]
struct FieldAttributes {
    name: Option<LitStr>,
    /// The kind, with the keyword that set it.
    kind: Option<(String, Kind)>,
}

impl FieldAttributes {
    fn take(&mut self, meta: &ParseNestedMeta<'_>, ty: &Type) -> syn::Result<()> {
        match key(meta).as_str() {
            "name" => once(&mut self.name, meta, || meta.value()?.parse()),
            "append" => self.take_kind(meta, || Ok(Kind::Append(item("append", ty)?))),
            "messages" => self.take_kind(meta, || Ok(Kind::Messages(item("messages", ty)?))),
            "topic" => self.take_kind(meta, || Ok(Kind::Topic(item("topic", ty)?))),
            "reduce" => self.take_kind(meta, || Ok(Kind::Reduce(reducer(meta, ty)?))),
            "ephemeral" => self.take_kind(meta, || Ok(Kind::Ephemeral)),
            "untracked" => self.take_kind(meta, || Ok(Kind::Untracked)),
            other => Err(meta.error(unknown_on_field(other))),
        }
    }

    fn take_kind(
        &mut self,
        meta: &ParseNestedMeta<'_>,
        kind: impl FnOnce() -> syn::Result<Kind>,
    ) -> syn::Result<()> {
        let word = key(meta);
        if let Some((first, _)) = &self.kind {
            let text = format!(
                "a channel has one kind, and this one has two: `{first}` and `{word}`; keep one"
            );
            return Err(meta.error(text));
        }
        self.kind = Some((word, kind()?));
        Ok(())
    }
}

const KINDS: [&str; 6] = [
    "append",
    "messages",
    "topic",
    "reduce",
    "ephemeral",
    "untracked",
];

fn unknown_on_field(found: &str) -> String {
    format!(
        "a channel has no setting `{found}`; a field takes `name = \"..\"` and one kind: `append`, `messages`, \
         `topic`, `reduce = path`, `ephemeral` or `untracked` (no kind means that the last write wins)"
    )
}

fn key(meta: &ParseNestedMeta<'_>) -> String {
    meta.path
        .get_ident()
        .map(Ident::to_string)
        .unwrap_or_default()
}

/// Sets an attribute that may be set only once.
fn once<T>(
    place: &mut Option<T>,
    meta: &ParseNestedMeta<'_>,
    value: impl FnOnce() -> syn::Result<T>,
) -> syn::Result<()> {
    if place.is_some() {
        return Err(meta.error(format!("`{}` is given twice; keep one", key(meta))));
    }
    *place = Some(value()?);
    Ok(())
}

/// Parses the function after `migrate =` or `check =`.
fn function(meta: &ParseNestedMeta<'_>) -> syn::Result<ExprPath> {
    meta.value()?.parse()
}

fn reducer(meta: &ParseNestedMeta<'_>, ty: &Type) -> syn::Result<ExprPath> {
    if !meta.input.peek(syn::Token![=]) {
        let ty = quote::quote!(#ty);
        let text = format!(
            "`reduce` needs the function that folds a write into the value: `#[state(reduce = path)]`, a `fn({ty}, {ty}) -> {ty}`"
        );
        return Err(meta.error(text));
    }
    meta.value()?.parse()
}

/// Returns the `X` of `Vec<X>`. A macro sees how a type is written, not what it is.
fn item(kind: &str, ty: &Type) -> syn::Result<Type> {
    let text = || format!("`#[state({kind})]` needs a `Vec<..>`, for each write adds items to it");
    argument_of(ty, "Vec")
        .cloned()
        .ok_or_else(|| syn::Error::new_spanned(ty, text()))
}

/// Returns the one type argument of a type that is written `name<..>`.
pub(crate) fn argument_of<'a>(ty: &'a Type, name: &str) -> Option<&'a Type> {
    let (ident, arguments) = name_and_arguments(ty)?;
    match arguments.as_slice() {
        [argument] if ident == name => Some(*argument),
        _ => None,
    }
}

/// Returns the last name of a path, and its type arguments. `None` for a type that is not a path, or has other arguments.
pub(crate) fn name_and_arguments(ty: &Type) -> Option<(&Ident, Vec<&Type>)> {
    let Type::Path(path) = ty else { return None };
    let last = path.path.segments.last()?;
    let arguments = match &last.arguments {
        PathArguments::None => Vec::new(),
        PathArguments::AngleBracketed(arguments) => {
            let types = arguments.args.iter().map(|argument| match argument {
                GenericArgument::Type(argument) => Some(argument),
                _ => None,
            });
            types.collect::<Option<Vec<&Type>>>()?
        }
        PathArguments::Parenthesized(_) => return None,
    };
    Some((&last.ident, arguments))
}

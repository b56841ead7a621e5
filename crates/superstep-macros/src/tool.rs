//! `#[tool]`: from an `async fn` to a function that returns a tool.
//!
//! The parameters become a struct whose schema the model sees, the doc comments become descriptions. What the macro writes can
//! be written by hand with `superstep_agent::tool`.

use proc_macro2::TokenStream;
use quote::{format_ident, quote};
use syn::ext::IdentExt as _;
use syn::parse::{Parse, ParseStream};
use syn::punctuated::Punctuated;
use syn::spanned::Spanned;
use syn::{
    Attribute, Error, Expr, ExprLit, FnArg, Ident, ItemFn, Lit, LitStr, Meta, Pat, PatType, Result,
    Token, Type,
};

/// What is in the brackets of `#[tool(..)]`.
#[derive(Default)]
pub(crate) struct Settings {
    class: Option<Ident>,
    name: Option<LitStr>,
}

impl Parse for Settings {
    fn parse(input: ParseStream<'_>) -> Result<Self> {
        let mut settings = Self::default();
        for setting in Punctuated::<Meta, Token![,]>::parse_terminated(input)? {
            match &setting {
                Meta::Path(path)
                    if ["read", "idempotent", "keyed"]
                        .iter()
                        .any(|c| path.is_ident(c)) =>
                {
                    if settings.class.is_some() {
                        return Err(Error::new(setting.span(), "a tool has one class"));
                    }
                    settings.class = path.get_ident().cloned();
                }
                Meta::NameValue(pair) if pair.path.is_ident("name") => match &pair.value {
                    Expr::Lit(ExprLit {
                        lit: Lit::Str(name),
                        ..
                    }) => settings.name = Some(name.clone()),
                    other => return Err(Error::new(other.span(), "the name is a string")),
                },
                other => {
                    return Err(Error::new(
                        other.span(),
                        "unknown setting; there are `read`, `idempotent`, `keyed` and `name = \"..\"`. For the rest, call the methods of `Tool` on what the function returns",
                    ));
                }
            }
        }
        Ok(settings)
    }
}

/// The parameters of the function, by what they are for.
#[derive(Default)]
struct Parameters {
    /// Marked `#[with]`: passed when the tool is made.
    dependencies: Vec<PatType>,
    /// What the model passes.
    arguments: Vec<PatType>,
    /// The whole list, as the body sees it.
    all: Vec<Ident>,
    /// The parameter of type `ToolCx`.
    cx: Option<Ident>,
}

/// Returns the function that makes the tool.
pub(crate) fn write(settings: &Settings, function: ItemFn) -> Result<TokenStream> {
    check(&function)?;
    let description = description(&function.attrs);
    if description.is_empty() {
        return Err(Error::new(
            function.sig.ident.span(),
            "a tool needs a doc comment: the model chooses by it",
        ));
    }
    let parameters = parameters(&function)?;
    let ItemFn {
        attrs,
        vis,
        sig,
        block,
    } = function;
    let (ident, output) = (&sig.ident, &sig.output);
    let name = settings
        .name
        .as_ref()
        .map_or_else(|| ident.unraw().to_string(), LitStr::value);
    let class = settings.class.iter();
    let Parameters {
        dependencies,
        arguments,
        all,
        cx,
    } = parameters;
    let argument_names: Vec<_> = arguments.iter().filter_map(name_of).collect();
    let cx_name = format_ident!("__cx");
    let passed = all.iter().map(|name| match &cx {
        Some(cx) if cx == name => quote!(#cx_name),
        _ if argument_names.contains(name) => quote!(__args.#name),
        _ => quote!(::core::clone::Clone::clone(&#name)),
    });
    let body_parameters = sig.inputs.iter().map(without_attributes);
    let (serde_path, schemars_path) = (
        "::superstep_agent::__private::serde",
        "::superstep_agent::__private::schemars",
    );
    // What other macros do, such as `#[instrument]`, is meant for the call, not for the making of the tool.
    let (outside, inside): (Vec<_>, Vec<_>) = attrs.iter().partition(|attr| is_of_the_item(attr));
    Ok(quote! {
        #(#outside)*
        #vis fn #ident(#(#dependencies),*) -> ::superstep_agent::Tool {
            #[derive(
                ::superstep_agent::__private::serde::Deserialize,
                ::superstep_agent::__private::schemars::JsonSchema,
            )]
            #[serde(crate = #serde_path)]
            #[schemars(crate = #schemars_path)]
            struct __Args {
                #(#arguments,)*
            }
            #(#inside)*
            async fn __call(#(#body_parameters),*) #output #block
            ::superstep_agent::tool(
                #name,
                #description,
                move |__args: __Args, #cx_name: ::superstep_agent::ToolCx| __call(#(#passed),*),
            )
            #(.#class())*
        }
    })
}

/// Whether an attribute is one of the language that belongs to the function the user calls.
fn is_of_the_item(attr: &Attribute) -> bool {
    const OF_THE_ITEM: [&str; 8] = [
        "doc",
        "cfg",
        "cfg_attr",
        "allow",
        "expect",
        "warn",
        "deny",
        "deprecated",
    ];
    OF_THE_ITEM.iter().any(|name| attr.path().is_ident(name))
}

fn check(function: &ItemFn) -> Result<()> {
    let sig = &function.sig;
    if sig.asyncness.is_none() {
        return Err(Error::new(sig.fn_token.span, "a tool is an `async fn`"));
    }
    if !sig.generics.params.is_empty() {
        return Err(Error::new(
            sig.generics.span(),
            "a tool has no type parameters: the model needs one schema",
        ));
    }
    Ok(())
}

fn parameters(function: &ItemFn) -> Result<Parameters> {
    let mut parameters = Parameters::default();
    for parameter in &function.sig.inputs {
        let FnArg::Typed(parameter) = parameter else {
            return Err(Error::new(
                parameter.span(),
                "a tool is not a method; pass what it needs as a parameter marked `#[with]`",
            ));
        };
        let Some(name) = name_of(parameter) else {
            return Err(Error::new(
                parameter.pat.span(),
                "a parameter of a tool is a plain name: the model passes it by this name",
            ));
        };
        parameters.all.push(name.clone());
        let mut parameter = parameter.clone();
        let before = parameter.attrs.len();
        parameter.attrs.retain(|attr| !attr.path().is_ident("with"));
        // The body's function keeps `mut`; a field and the parameter of the outer function have a plain name.
        parameter.pat = Box::new(syn::parse_quote!(#name));
        if parameter.attrs.len() < before {
            // rustc allows no doc comments on parameters.
            parameter.attrs.retain(|attr| !attr.path().is_ident("doc"));
            parameters.dependencies.push(parameter);
        } else if is_tool_cx(&parameter.ty) {
            parameters.cx = Some(name);
        } else {
            parameters.arguments.push(parameter);
        }
    }
    Ok(parameters)
}

fn name_of(parameter: &PatType) -> Option<Ident> {
    match &*parameter.pat {
        Pat::Ident(pat) if pat.by_ref.is_none() && pat.subpat.is_none() => Some(pat.ident.clone()),
        _ => None,
    }
}

fn is_tool_cx(ty: &Type) -> bool {
    let last = |path: &syn::TypePath| path.path.segments.last().map(|last| last.ident.clone());
    matches!(ty, Type::Path(path) if last(path).is_some_and(|last| last == "ToolCx"))
}

/// Returns a parameter as the body's function declares it. Doc comments are not allowed on parameters.
fn without_attributes(parameter: &FnArg) -> FnArg {
    let mut parameter = parameter.clone();
    if let FnArg::Typed(typed) = &mut parameter {
        typed.attrs.clear();
    }
    parameter
}

/// Returns the doc comment as one text.
pub(crate) fn description(attrs: &[Attribute]) -> String {
    let line = |attr: &Attribute| match &attr.meta {
        Meta::NameValue(pair) if pair.path.is_ident("doc") => match &pair.value {
            Expr::Lit(ExprLit {
                lit: Lit::Str(text),
                ..
            }) => Some(text.value().trim().to_owned()),
            _ => None,
        },
        _ => None,
    };
    let lines: Vec<String> = attrs.iter().filter_map(line).collect();
    lines.join("\n").trim().to_owned()
}

#[cfg(test)]
mod tests {
    use super::{Settings, write};
    use syn::parse_quote;

    fn refused(function: syn::ItemFn) -> String {
        write(&Settings::default(), function)
            .unwrap_err()
            .to_string()
    }

    #[test]
    fn what_cannot_be_a_tool_is_refused_with_what_to_do() {
        let undocumented = refused(parse_quote! { async fn pay(cents: u64) -> Paid {} });
        assert_eq!(
            undocumented,
            "a tool needs a doc comment: the model chooses by it"
        );
        let blocking = refused(parse_quote! {
            /// Pays.
            fn pay(cents: u64) -> Paid {}
        });
        assert_eq!(blocking, "a tool is an `async fn`");
        let generic = refused(parse_quote! {
            /// Pays.
            async fn pay<T>(cents: T) -> Paid {}
        });
        assert!(generic.starts_with("a tool has no type parameters"));
        let method = refused(parse_quote! {
            /// Pays.
            async fn pay(&self, cents: u64) -> Paid {}
        });
        assert!(method.contains("#[with]"));
        let pattern = refused(parse_quote! {
            /// Pays.
            async fn pay((a, b): (u64, u64)) -> Paid {}
        });
        assert!(pattern.starts_with("a parameter of a tool is a plain name"));
    }

    #[test]
    fn names_attributes_and_parameters_go_where_they_belong() {
        let function = parse_quote! {
            /// Moves.
            #[instrument]
            async fn r#move(
                /// The desk.
                #[with]
                desk: Arc<Desk>,
                /// Where to.
                mut place: String,
            ) -> Moved {}
        };
        let code = write(&Settings::default(), function).unwrap().to_string();
        assert!(code.contains("\"move\""), "{code}");
        assert!(
            code.contains(
                "# [instrument] async fn __call (desk : Arc < Desk > , mut place : String)"
            ),
            "{code}"
        );
        assert!(code.contains("fn r#move (desk : Arc < Desk >)"), "{code}");
        assert!(code.contains("place : String ,"), "{code}");
    }

    #[test]
    fn unknown_settings_are_refused_with_the_known_ones() {
        let unknown = syn::parse_str::<Settings>("readonly")
            .err()
            .unwrap()
            .to_string();
        assert!(unknown.contains("`read`, `idempotent`, `keyed`"));
        let twice = syn::parse_str::<Settings>("read, keyed")
            .err()
            .unwrap()
            .to_string();
        assert_eq!(twice, "a tool has one class");
    }
}

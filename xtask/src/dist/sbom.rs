//! The bill of materials, as CycloneDX: what is linked into the program, with digests, licences, and what needs what.

use serde_json::{Map, Value as Json, json};

use super::linked::{Crate, Kind, Linked, PROGRAM};
use super::release::Release;
use super::sha256;

/// Returns the document. `program` is the linked file.
pub(super) fn document(release: &Release, program: &[u8], linked: &[Linked]) -> Json {
    let digest = sha256(program);
    let components = linked.iter().filter(|one| one.name != PROGRAM);
    json!({
        "$schema": "http://cyclonedx.org/schema/bom-1.6.schema.json",
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "serialNumber": format!("urn:uuid:{}", uuid(&digest)),
        "version": 1,
        "metadata": {
            "timestamp": release.timestamp(),
            "tools": { "components": [{ "type": "application", "name": "cargo xtask dist" }] },
            "component": {
                "type": "application",
                "bom-ref": reference(linked.iter().find(|one| one.name == PROGRAM)),
                "name": "archie",
                "version": release.version,
                "licenses": [{ "expression": "MIT OR Apache-2.0" }],
                "hashes": [{ "alg": "SHA-256", "content": digest }],
            },
        },
        "components": components.map(component).collect::<Vec<_>>(),
        "dependencies": linked.iter().map(|one| dependency(one, linked)).collect::<Vec<_>>(),
    })
}

fn component(one: &Linked) -> Json {
    let mut component = Map::new();
    let mut set = |key: &str, value: Json| component.insert(key.to_owned(), value);
    set("type", "library".into());
    set("bom-ref", reference(Some(one)).into());
    set("name", one.name.clone().into());
    set("version", one.version.clone().into());
    set("licenses", json!([{ "expression": one.licence }]));
    if let Kind::Crate(package) = &one.kind {
        set("purl", reference(Some(one)).into());
        if let Some(checksum) = &package.checksum {
            set("hashes", json!([{ "alg": "SHA-256", "content": checksum }]));
        }
    }
    if let Some(url) = &one.repository {
        set("externalReferences", json!([{ "type": "vcs", "url": url }]));
    }
    Json::Object(component)
}

fn dependency(one: &Linked, linked: &[Linked]) -> Json {
    let needs = |other: &&Linked| match (&one.kind, &other.kind) {
        (Kind::Crate(Crate { needs, .. }), Kind::Crate(_)) => {
            needs.contains(&(other.name.clone(), other.version.clone()))
        }
        (Kind::Crate(_), Kind::Inside { package }) => *package == one.name,
        // Every crate needs the standard library; saying it once is enough.
        (Kind::Crate(_), Kind::Toolchain { .. }) => one.name == PROGRAM,
        _ => false,
    };
    let needs = linked
        .iter()
        .filter(needs)
        .map(|other| reference(Some(other)));
    json!({ "ref": reference(Some(one)), "dependsOn": needs.collect::<Vec<_>>() })
}

/// The name by which the parts of the document refer to each other; of a crate, its package URL.
fn reference(one: Option<&Linked>) -> String {
    match one {
        Some(Linked {
            name,
            version,
            kind: Kind::Crate(_),
            ..
        }) => format!("pkg:cargo/{name}@{version}"),
        Some(Linked { name, version, .. }) => format!("{name}@{version}"),
        None => "archie".to_owned(),
    }
}

/// A UUID of version 8 from a digest: the same program has the same one.
fn uuid(digest: &str) -> String {
    let part = |from: usize, to: usize| digest.get(from..to).unwrap_or_default();
    format!(
        "{}-{}-8{}-8{}-{}",
        part(0, 8),
        part(8, 12),
        part(12, 15),
        part(15, 18),
        part(18, 30)
    )
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::dist::release;

    fn linked(name: &str, kind: Kind) -> Linked {
        Linked {
            name: name.to_owned(),
            version: "1.0.0".to_owned(),
            licence: "MIT".to_owned(),
            repository: None,
            kind,
        }
    }

    fn package(needs: &[&str]) -> Kind {
        Kind::Crate(Crate {
            is_ours: false,
            folder: "x".into(),
            checksum: Some("ab".repeat(32)),
            needs: needs
                .iter()
                .map(|name| ((*name).to_owned(), "1.0.0".to_owned()))
                .collect(),
        })
    }

    fn example() -> Json {
        let inside = Kind::Inside {
            package: "libsqlite3-sys".to_owned(),
        };
        let linked = [
            linked(PROGRAM, package(&["libsqlite3-sys"])),
            linked("libsqlite3-sys", package(&[])),
            linked("sqlite", inside),
            linked("glibc", Kind::Toolchain { texts: Vec::new() }),
        ];
        document(&release::example(), b"program", &linked)
    }

    #[test]
    fn the_document_lists_what_is_linked_and_what_needs_what() {
        let document = example();
        assert_eq!(document["metadata"]["timestamp"], "2023-11-14T22:13:20Z");
        let names = document["components"].as_array().unwrap().iter();
        let names: Vec<_> = names.map(|one| one["name"].as_str().unwrap()).collect();
        assert_eq!(names, ["libsqlite3-sys", "sqlite", "glibc"]);
        assert_eq!(
            document["dependencies"][0],
            json!({
                "ref": "pkg:cargo/superstep-archie@1.0.0",
                "dependsOn": ["pkg:cargo/libsqlite3-sys@1.0.0", "glibc@1.0.0"],
            })
        );
        assert_eq!(
            document["dependencies"][1]["dependsOn"],
            json!(["sqlite@1.0.0"])
        );
    }

    #[test]
    fn each_reference_is_that_of_one_component() {
        let document = example();
        let list = |json: &Json| json.as_array().cloned().unwrap();
        let mut known = vec![document["metadata"]["component"]["bom-ref"].clone()];
        known.extend(
            list(&document["components"])
                .iter()
                .map(|one| one["bom-ref"].clone()),
        );
        let distinct: BTreeSet<_> = known.iter().map(Json::to_string).collect();
        assert_eq!(distinct.len(), known.len());
        for dependency in list(&document["dependencies"]) {
            assert!(known.contains(&dependency["ref"]), "{dependency}");
            let needs = list(&dependency["dependsOn"]);
            assert!(
                needs.iter().all(|need| known.contains(need)),
                "{dependency}"
            );
        }
    }

    #[test]
    fn the_serial_number_is_a_uuid_of_the_program() {
        let document = example();
        let serial = document["serialNumber"].as_str().unwrap();
        let parts: Vec<_> = serial.trim_start_matches("urn:uuid:").split('-').collect();
        let lengths: Vec<_> = parts.iter().map(|part| part.len()).collect();
        assert_eq!(lengths, [8, 4, 4, 4, 12], "{serial}");
        assert!(parts[2].starts_with('8') && parts[3].starts_with('8'));
    }
}

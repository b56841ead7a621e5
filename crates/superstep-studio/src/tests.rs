use std::fs;
use std::path::{Path as FilePath, PathBuf};

use axum::body::to_bytes;
use http::Request;
use sha2::{Digest, Sha256};
use tower::ServiceExt;

use super::*;

async fn get_page(path: &str, headers: &[(HeaderName, &str)]) -> (StatusCode, HeaderMap, Vec<u8>) {
    let mut request = Request::get(path);
    for (name, value) in headers {
        request = request.header(name, *value);
    }
    let request = request.body(Body::empty()).unwrap();
    let response = routes::<()>()
        .with_state(())
        .oneshot(request)
        .await
        .unwrap();
    let (head, body) = response.into_parts();
    let body = to_bytes(body, usize::MAX).await.unwrap();
    (head.status, head.headers, body.to_vec())
}

/// Returns the addresses of the page's script and style.
async fn assets() -> Vec<String> {
    let (_, _, page) = get_page("/studio/", &[]).await;
    let page = String::from_utf8(page).unwrap();
    let quoted = page.split('"').filter(|text| text.starts_with("./assets/"));
    quoted
        .map(|text| text.replacen("./", "/studio/", 1))
        .collect()
}

#[tokio::test]
async fn every_view_is_the_page_and_finds_its_files() {
    for (path, prefix) in [
        ("/studio/", "\"./assets/"),
        ("/studio/inbox", "\"./assets/"),
        ("/studio/threads/1", "\"./../assets/"),
        ("/studio/threads/1/2", "\"./../../assets/"),
    ] {
        let (status, headers, body) = get_page(path, &[]).await;
        assert_eq!(status, 200);
        assert_eq!(headers[CONTENT_TYPE], "text/html; charset=utf-8");
        let page = String::from_utf8(body).unwrap();
        assert!(page.contains(prefix), "{path}: {page}");
        assert!(
            !page.contains("<style") && !page.contains("<script>"),
            "{page}"
        );
    }
    assert!(assets().await.len() >= 2);
}

#[tokio::test]
async fn a_file_is_the_same_compressed_or_not_and_cached() {
    for path in assets().await {
        let (_, headers, plain) = get_page(&path, &[]).await;
        assert!(!headers.contains_key(CONTENT_ENCODING));
        let accept = [(ACCEPT_ENCODING, "gzip, br")];
        let (_, headers, compressed) = get_page(&path, &accept).await;
        assert_eq!(headers[CONTENT_ENCODING], "br");
        assert_eq!(decompress(&compressed), plain, "{path}");
        assert!(
            headers[CACHE_CONTROL]
                .to_str()
                .unwrap()
                .contains("immutable")
        );
        let known = [(IF_NONE_MATCH, headers[ETAG].to_str().unwrap())];
        assert_eq!(get_page(&path, &known).await.0, 304);
    }
}

#[tokio::test]
async fn a_file_that_is_not_there_is_not_the_page() {
    for path in [
        "/studio/assets/old-1234.js",
        "/studio/assets/../../Cargo.toml",
    ] {
        assert_eq!(get_page(path, &[]).await.0, 404, "{path}");
    }
}

#[tokio::test]
async fn everything_is_served_under_the_policy() {
    let mut paths = assets().await;
    paths.push("/studio/threads".to_owned());
    for path in paths {
        let (_, headers, _) = get_page(&path, &[]).await;
        let policy = headers[CONTENT_SECURITY_POLICY].to_str().unwrap();
        assert!(policy.starts_with("default-src 'none'"), "{policy}");
        assert!(!policy.contains("unsafe"), "{policy}");
        assert_eq!(headers[X_CONTENT_TYPE_OPTIONS], "nosniff");
    }
}

#[test]
fn the_bundle_is_small_enough() {
    let files: Vec<_> = Bundle::iter().collect();
    let sizes = files
        .iter()
        .map(|path| Bundle::get(path).unwrap().data.len());
    let total: usize = sizes.sum();
    assert!(total <= 1_500_000, "{total} bytes");
}

/// The page in the crate must be the page of the sources. Where these are not, as in the published crate, there is nothing to compare.
#[test]
fn the_bundle_is_built_from_the_sources() {
    let crate_root = FilePath::new(env!("CARGO_MANIFEST_DIR"));
    let studio = crate_root.join("../../studio");
    if !studio.join("package.json").exists() {
        return;
    }
    let mut files = Vec::new();
    for part in SOURCES {
        collect(&studio.join(part), &mut files);
    }
    let name_of = |file: &PathBuf| file.strip_prefix(&studio).unwrap().display().to_string();
    // By the bytes of the names, as the script does. Paths would be sorted by their parts.
    files.sort_by_key(name_of);
    let mut hasher = Sha256::new();
    for file in files {
        let content = Sha256::digest(fs::read(&file).unwrap());
        hasher.update(format!("{} {}\n", name_of(&file), hex(&content)));
    }
    let recorded = fs::read_to_string(crate_root.join("source.sha256")).unwrap();
    assert_eq!(
        recorded.trim(),
        hex(&hasher.finalize()),
        "the sources of Studio changed: run `npm run build` in `studio/` and commit the bundle"
    );
}

fn collect(path: &FilePath, files: &mut Vec<PathBuf>) {
    if path.is_file() {
        files.push(path.to_owned());
        return;
    }
    for entry in fs::read_dir(path).unwrap() {
        let path = entry.unwrap().path();
        if !path.to_string_lossy().contains(".test.") {
            collect(&path, files);
        }
    }
}

/// What the bundle is built from. `studio/scripts/bundle.mjs` has the same list.
const SOURCES: [&str; 5] = [
    "index.html",
    "package-lock.json",
    "public",
    "src",
    "vite.config.ts",
];

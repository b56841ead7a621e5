//! Sixty texts that act in a browser, in every page that the program writes. The pages are opened in Chromium: no script runs,
//! nothing is asked for, nobody is sent elsewhere, and the text is there to read.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use pulldown_cmark::{Options, Parser};
use serde_json::{Value as Json, json};

use crate::atris::{Server, ServerReply};
use crate::kit::Workdir;

/// What strangers may write. `URL` is a server that writes down who comes.
const PAYLOADS: [&str; 60] = [
    // Scripts and handlers.
    "<script>fetch('URL/1')</script>",
    "<script src=URL/2></script>",
    "<ScRiPt>document.title='pwned'</sCrIpT>",
    "<img src=x onerror=fetch('URL/4')>",
    "<svg onload=fetch('URL/5')>",
    "<svg><script>fetch('URL/6')</script></svg>",
    "<body onload=fetch('URL/7')>",
    "<details open ontoggle=fetch('URL/8')>x</details>",
    "<input autofocus onfocus=fetch('URL/9')>",
    "<video><source onerror=fetch('URL/10')></video>",
    "<math><mtext></form><form><mglyph><style></math><img src onerror=fetch('URL/11')>",
    "<noscript><p title=\"</noscript><img src=x onerror=fetch('URL/12')>\">",
    "<a href=x onmouseover=fetch('URL/13') style=position:fixed;inset:0>x</a>",
    "<template><script>fetch('URL/14')</script></template>",
    // Navigation.
    "<meta http-equiv=refresh content='0;url=URL/15'>",
    "<META HTTP-EQUIV=\"refresh\" CONTENT=\"0; URL=URL/16\">",
    "<base href=URL/17/>",
    "<form action=URL/18><button autofocus>go</button></form>",
    "<iframe src=URL/19></iframe>",
    "<iframe srcdoc='<script>fetch(\"URL/20\")</script>'></iframe>",
    "<object data=URL/21></object>",
    "<embed src=URL/22>",
    "<frameset><frame src=URL/23></frameset>",
    "<portal src=URL/24></portal>",
    // Requests.
    "<img src=URL/25>",
    "<img srcset='URL/26 1x'>",
    "<link rel=stylesheet href=URL/27>",
    "<link rel=prefetch href=URL/28>",
    "<link rel=dns-prefetch href=//evil.example>",
    "<link rel=icon href=URL/30>",
    "<style>@import 'URL/31';</style>",
    "<style>*{background:url(URL/32)}</style>",
    "<div style='background:url(URL/33)'>x</div>",
    "<audio src=URL/34 autoplay></audio>",
    "<video poster=URL/35></video>",
    "<svg><image href=URL/36 /></svg>",
    "<svg><use href=URL/37#x /></svg>",
    "<input type=image src=URL/38>",
    "<table background=URL/39><tr><td>x</td></tr></table>",
    "<a href=x ping=URL/40>x</a>",
    // Leaving what they are in.
    "\"><script>fetch('URL/41')</script>",
    "'><img src=URL/42>",
    "</title><script>fetch('URL/43')</script>",
    "</style><script>fetch('URL/44')</script>",
    "--><script>fetch('URL/45')</script>",
    "]]><script>fetch('URL/46')</script>",
    "</textarea></xmp></pre></code><img src=URL/47>",
    "x\" onclick=\"fetch('URL/48')\" id=\"",
    "{{links}}<img src=URL/49>{{sections}}",
    // Markdown.
    "[x](javascript:fetch('URL/50'))",
    "![x](URL/51)",
    "[x][r]\n\n[r]: javascript:fetch('URL/52')",
    "<javascript:fetch('URL/53')>",
    "`x\n\n<img src=URL/54>\n\n`",
    "```\n<img src=URL/55>\n```\n<img src=URL/55b>",
    "~~~mermaid\ngraph TD\nA[\"<img src=URL/56>\"] --> B\nclick A \"javascript:fetch('URL/56')\"\n~~~",
    "| a |\n| --- |\n| x \\| <img src=URL/57> |\n`\\`<img src=URL/57>",
    "[a [b](x)](data:text/html,<script>fetch('URL/58')</script>) &lt;img src=URL/58&gt;",
    "<!--><img src=URL/59>-->",
    "\u{202e}<img src=URL/60>\u{2028}<img src=URL/60>",
];

fn payloads(url: &str) -> Vec<String> {
    let numbered = PAYLOADS.iter().enumerate();
    numbered
        .map(|(at, payload)| format!("Q{:02} {}", at + 1, payload.replace("URL", url)))
        .collect()
}

/// Opens a page, waits until nothing goes on in it any more, and returns what it has become.
fn opened(page: &Path, folder: &Path) -> String {
    let mut browser = Command::new("chromium");
    browser
        .args([
            "--headless",
            "--no-sandbox",
            "--disable-gpu",
            "--disable-quic",
            "--disable-dev-shm-usage",
            "--no-first-run",
            "--disable-background-networking",
            "--disable-component-update",
            "--disable-sync",
            "--virtual-time-budget=3000",
            "--dump-dom",
        ])
        .arg(format!(
            "--user-data-dir={}",
            folder.join("browser").display()
        ))
        .arg(page)
        .stdout(Stdio::piped())
        .stderr(Stdio::null());
    let mut browser = browser.spawn().expect("`chromium` is installed by .ci/run");
    let mut out = browser.stdout.take().unwrap();
    let reader = std::thread::spawn(move || {
        let mut text = String::new();
        std::io::Read::read_to_string(&mut out, &mut text).unwrap();
        text
    });
    let begun = Instant::now();
    while browser.try_wait().unwrap().is_none() {
        if begun.elapsed() > Duration::from_secs(60) {
            browser.kill().unwrap();
            panic!("chromium does not end");
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    reader.join().unwrap()
}

/// The tags of a document as a browser has read it.
fn tags(dom: &str) -> Vec<&str> {
    let mut tags = Vec::new();
    // What a style sheet holds is no markup.
    for part in dom.split("<style>") {
        let part = part.rsplit("</style>").next().unwrap_or(part);
        let opened = part.split('<').skip(1);
        tags.extend(opened.filter_map(|rest| Some(rest.split_once('>')?.0)));
    }
    tags.retain(|tag| !tag.starts_with('/'));
    tags
}

/// Every tag is one that we write, without handlers, and links lead to pages.
#[track_caller]
fn is_inert(dom: &str, ours: &[&str]) {
    for tag in tags(dom) {
        let name = tag.split([' ', '\n', '/']).next().unwrap_or_default();
        assert!(ours.contains(&name), "<{tag}> is in the page:\n{dom}");
        for word in tag.split_whitespace().skip(1) {
            assert!(!word.starts_with("on"), "<{tag}>");
            assert!(!word.to_lowercase().starts_with("style="), "<{tag}>");
        }
        let lower = tag.to_lowercase();
        let is_bad = ["javascript:", "data:", "http-equiv=\"refresh\"", "ping="];
        assert!(is_bad.iter().all(|bad| !lower.contains(bad)), "<{tag}>");
    }
}

fn listener() -> Server {
    Server::start(|_| ServerReply::Json(200, json!({})))
}

const WORDS: [&str; 28] = [
    "!DOCTYPE",
    "html",
    "head",
    "body",
    "title",
    "meta",
    "p",
    "br",
    "hr",
    "h1",
    "h2",
    "h3",
    "em",
    "strong",
    "del",
    "code",
    "pre",
    "blockquote",
    "ul",
    "ol",
    "li",
    "table",
    "thead",
    "tbody",
    "tr",
    "th",
    "td",
    "a",
];
const VIEWER: [&str; 16] = [
    "style", "nav", "main", "section", "figure", "details", "summary", "svg", "rect", "line",
    "text", "polygon", "input", "label", "fieldset", "script",
];

/// A repository whose every name is a stranger's, its pages of before, and a model that writes them down.
fn repository(url: &str) -> Workdir {
    let all = payloads(url).join("\n\n");
    let written = |agent: &str| {
        [
            json!({ "at": format!("{agent}-InitialAnalysis"), "text": all }),
            // It ends in an open code block, so its end is asked for.
            json!({ "at": format!("{agent}-InitialAnalysis"), "text": "```\n\nThat is all." }),
            json!({ "at": format!("{agent}-EvaluateClarity"), "json": { "completeness": 90, "clarity": 90, "depth": 90, "accuracy": 90 } }),
        ]
    };
    let replies: Vec<Json> = [
        "file-structure",
        "dependency-analyzer",
        "architecture-analyzer",
    ]
    .iter()
    .flat_map(|agent| written(agent))
    .collect();
    let workdir = Workdir::scripted(&json!(replies));
    let repo = crate::docs::repository(&workdir.path(""));
    fs::remove_file(repo.join("Cargo.toml")).unwrap();
    let mut dependencies = serde_json::Map::new();
    let mut agents = serde_json::Map::new();
    fs::create_dir(workdir.path("out")).unwrap();
    for (at, payload) in payloads(url).iter().enumerate() {
        dependencies.insert(payload.clone(), json!(payload));
        let page = format!("page-{at}.md");
        fs::write(workdir.path("out").join(&page), payload).unwrap();
        let result = json!({ "agentName": payload, "status": "success", "summary": payload, "confidence": 0.5 });
        agents.insert(
            payload.clone(),
            json!({ "page": page, "result": result, "history": [] }),
        );
        let folder = repo.join(payload.replace('/', "\u{2215}"));
        fs::create_dir(&folder).unwrap();
        fs::write(folder.join("a.py"), "import os\n").unwrap();
        let package =
            json!({ "name": payload, "dependencies": { format!("Q{:02} b", at): "file:x" } });
        fs::write(folder.join("package.json"), package.to_string()).unwrap();
    }
    let package =
        json!({ "name": payloads(url).join(" "), "version": all, "dependencies": dependencies });
    fs::write(repo.join("package.json"), package.to_string()).unwrap();
    let manifest = json!({ "version": 1, "project": all, "agents": agents });
    fs::write(workdir.path("out/manifest.json"), manifest.to_string()).unwrap();
    workdir
}

#[test]
fn the_viewer_shows_sixty_texts_and_does_nothing() {
    let listener = listener();
    let workdir = repository(&listener.url());
    let ran = workdir.run(
        &[
            "docs",
            "repo",
            "--output",
            "out",
            "--agents",
            "file-structure,dependency-analyzer,architecture-analyzer",
            "--clarity-threshold",
            "1",
        ],
        "",
    );
    assert_eq!(ran.code(), Some(0), "{ran:?}");
    let dom = opened(&workdir.path("out/index.html"), &workdir.path(""));
    assert!(dom.contains("architecture documentation"), "{dom}");
    is_inert(&dom, &[&WORDS[..], &VIEWER[..]].concat());
    // The search is the only script, and it ran: it shows its box.
    let scripts = tags(&dom)
        .into_iter()
        .filter(|tag| tag.starts_with("script"));
    assert_eq!(scripts.collect::<Vec<_>>(), ["script"]);
    let is_search = |tag: &&str| tag.starts_with("input id=\"search\"");
    let search = tags(&dom).into_iter().find(is_search).unwrap();
    assert!(!search.contains("hidden"), "{search}");
    for at in 1..=60 {
        assert!(dom.contains(&format!("Q{at:02} ")), "Q{at:02} is not there");
    }
    assert!(dom.contains("&lt;script&gt;fetch("), "it is there to read");
    assert_eq!(listener.got(), [], "nobody was asked");
}

#[test]
fn no_page_in_markdown_acts_wherever_it_is_rendered() {
    let listener = listener();
    let url = listener.url();
    let workdir = repository(&url);
    let docs = [
        "docs",
        "repo",
        "--output",
        "out",
        "--agents",
        "file-structure,dependency-analyzer,architecture-analyzer",
        "--clarity-threshold",
        "1",
    ];
    assert_eq!(workdir.run(&docs, "").code(), Some(0));
    let mut page = rendered(&fs::read_to_string(workdir.path("out/index.md")).unwrap());
    for agent in [
        "file-structure",
        "dependency-analyzer",
        "architecture-analyzer",
    ] {
        page.push_str(&rendered(
            &fs::read_to_string(workdir.path("out").join(format!("{agent}.md"))).unwrap(),
        ));
    }
    let claims: Vec<Json> = payloads(&url)
        .iter()
        .map(|payload| json!({ "claim": payload, "file": payload, "line": 1, "quote": payload }))
        .collect();
    let all = payloads(&url).join("\n");
    let notes = Workdir::scripted(&json!([
        {"at": "initial", "text": format!("{all}\nIs that so?")},
        {"at": "final", "json": { "assumptions": claims, "components": [], "alternatives": [], "decisions": [], "open_questions": [] }}
    ]));
    let ran = notes.run(&["analyze", "--query", &all, "--inputs", "notes"], "DONE\n");
    assert_eq!(ran.code(), Some(0), "{ran:?}");
    page.push_str(&rendered(&notes.result()));
    let code = format!("print({})", json!(all));
    let sheet = crate::sheet::with_sales(&json!([
        { "at": "planner_node", "tool_calls": [{ "name": "PythonInterpreter", "args": { "code": code } }] },
        { "at": "planner_node", "text": format!("Finish: {all}") }
    ]));
    let ran = sheet.run(
        &[
            "sheet",
            "sales.xlsx",
            "--instruction",
            &all,
            "--output-dir",
            "out",
            "--yes",
        ],
        "",
    );
    assert_eq!(ran.code(), Some(0), "{ran:?}");
    page.push_str(&rendered(
        &fs::read_to_string(sheet.path("out/report.md")).unwrap(),
    ));
    let file = workdir.path("all.html");
    fs::write(
        &file,
        format!("<!doctype html><meta charset=utf-8><title>ours</title>{page}"),
    )
    .unwrap();
    let dom = opened(&file, &workdir.path(""));
    assert!(dom.contains("<title>ours</title>"), "{dom}");
    is_inert(&dom, &WORDS);
    for at in 1..=60 {
        assert!(dom.contains(&format!("Q{at:02} ")), "Q{at:02} is not there");
    }
    assert_eq!(listener.got(), [], "nobody was asked");
}

/// As a forge would, without its care: raw HTML stays.
fn rendered(markdown: &str) -> String {
    let mut page = String::new();
    let forge = Options::ENABLE_TABLES
        | Options::ENABLE_FOOTNOTES
        | Options::ENABLE_STRIKETHROUGH
        | Options::ENABLE_TASKLISTS
        | Options::ENABLE_GFM;
    pulldown_cmark::html::push_html(&mut page, Parser::new_ext(markdown, forge));
    page
}

#[test]
fn the_same_texts_do_act_where_nobody_escapes_them() {
    let listener = listener();
    let folder = tempfile::tempdir().unwrap();
    let acting = [1, 4, 25, 31].map(|at| payloads(&listener.url())[at - 1].clone());
    let file = folder.path().join("bad.html");
    fs::write(&file, acting.join("\n")).unwrap();
    let dom = opened(&file, folder.path());
    let came = listener.lines();
    for at in [1, 4, 25, 31] {
        assert!(came.contains(&format!("GET /{at}")), "{came:?}\n{dom}");
    }
    let went = folder.path().join("refresh.html");
    fs::write(&went, &payloads(&listener.url())[14]).unwrap();
    opened(&went, folder.path());
    assert!(
        listener.lines().contains(&"GET /15".to_owned()),
        "{:?}",
        listener.lines()
    );
}

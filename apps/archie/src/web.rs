//! The tool `fetch_page`, which reads pages of the web for an agent. The settings turn it on, and a person approves each call.
//!
//! A call can carry away what the agent has read, in the address, and a page can hold instructions for the model. So the person
//! sees every address before it is called, whatever the labels of the arguments are, and the text is labeled untrusted.

use std::borrow::Cow;
use std::sync::Arc;
use std::time::Duration;

use archie_agent::FETCH_PAGE;
use archie_atris::connector::{
    AllowedHost, AllowedOrigins, Answer, Call, Connector, Fault, Http, SystemNames, Url,
};
use archie_email_assistant::html::{visible, visible_html};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value as Json;
use superstep::label::{Label, Policy};
use superstep_agent::{Approval, Tool, ToolCx, ToolError, tool};

/// How agents may read pages of the web.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct WebSettings {
    /// Hosts that may be called also if their addresses are private.
    pub allow_hosts: Vec<AllowedHost>,
}

#[derive(Debug, Deserialize, JsonSchema)]
struct PageRequest {
    /// Full address of the page, such as `https://example.com/prices`.
    url: String,
}

/// Returns the tool. It calls public addresses and the allowed hosts.
pub(crate) fn fetch_page(settings: &WebSettings) -> Tool {
    let http = Http {
        bytes_max: PAGE_BYTES_MAX,
        timeout: TIME_MAX,
        is_cut: true,
        user_agent: Cow::Borrowed(concat!("archie/", env!("CARGO_PKG_VERSION"))),
    };
    let connector = Connector::over(Arc::new(SystemNames), Arc::new(http));
    let reach = AllowedOrigins::internet(settings.allow_hosts.iter().cloned());
    fetch_page_over(connector, reach)
}

fn fetch_page_over(connector: Connector, reach: AllowedOrigins) -> Tool {
    let fetch = move |request: PageRequest, _: ToolCx| {
        let (connector, reach) = (connector.clone(), reach.clone());
        async move {
            let answer = connector.send(Call::get(request.url), &reach).await;
            // Reading changes nothing, so every failure is one that the model may hear of.
            let answer = answer.map_err(|fault| ToolError::failed(reason(&fault)))?;
            page_text(&answer).map_err(ToolError::failed)
        }
    };
    tool(
        FETCH_PAGE,
        "Reads the text of a page of the web. A person approves each call.",
        fetch,
    )
    .read()
    // Not even untrusted data, which a tool that reads accepts by default: the address leaves the machine.
    .takes(Policy::new())
    .gives(Label::UNTRUSTED)
    .approved_by_a_person(Approval::always().described(question))
}

fn question(args: &Json) -> String {
    let url = args["url"].as_str().and_then(|url| url.parse::<Url>().ok());
    let host = url.as_ref().and_then(Url::host_str);
    format!(
        "May `{FETCH_PAGE}` read a page of {}? The site gets the address, and Archie follows its redirects.",
        host.unwrap_or("this site")
    )
}

fn reason(fault: &Fault) -> String {
    match fault {
        Fault::Refused(why) => {
            format!("{why} (`allow_hosts` of `web` in the settings allows private hosts)")
        }
        Fault::NotSent(why) | Fault::Unknown(why) => why.clone(),
    }
}

/// Returns the text of a page as a person would see it, or why there is none.
fn page_text(answer: &Answer) -> Result<String, String> {
    if !(200..300).contains(&answer.status) {
        return Err(format!("the site answered {}", answer.status));
    }
    let kind = answer.content_type.split(';').next().unwrap_or_default();
    let kind = kind.trim().to_ascii_lowercase();
    let body = String::from_utf8_lossy(&answer.body);
    let page = match kind.as_str() {
        "text/html" | "application/xhtml+xml" => visible_html(&body),
        "" | "application/json" | "application/xml" => visible(&body),
        kind if kind.starts_with("text/") => visible(&body),
        kind => return Err(format!("the page is `{kind}`, not text")),
    };
    let text = page.text.trim();
    match text.len() {
        0 => Err("the page has no text".to_owned()),
        1..=TEXT_BYTES_MAX => Ok(text.to_owned()),
        _ => {
            let text = &text[..text.floor_char_boundary(TEXT_BYTES_MAX)];
            Ok(format!("{text}\n(the rest of the page is left out)"))
        }
    }
}

/// Maximum size of a page. The rest is not read.
const PAGE_BYTES_MAX: usize = 1 << 20;
/// Maximum size of the text that the model gets.
const TEXT_BYTES_MAX: usize = 64 << 10;
/// Maximum time of a call.
const TIME_MAX: Duration = Duration::from_secs(20);

#[cfg(test)]
mod tests {
    use std::net::IpAddr;

    use archie_atris::connector::{BoxFuture, NameResolver, Transport, VettedCall};
    use serde_json::json;

    use super::*;

    struct Names;

    impl NameResolver for Names {
        fn look_up<'a>(&'a self, name: &'a str) -> BoxFuture<'a, std::io::Result<Vec<IpAddr>>> {
            let address: IpAddr = match name {
                "inside.example" => [10, 0, 0, 1].into(),
                _ => [93, 184, 216, 34].into(),
            };
            Box::pin(async move { Ok(vec![address]) })
        }
    }

    struct Site;

    impl Transport for Site {
        fn send(&self, vetted: VettedCall) -> BoxFuture<'_, Result<Answer, Fault>> {
            assert_eq!(vetted.url.host_str(), Some("shop.example"));
            let (status, content_type, body) = match vetted.url.path() {
                "/prices" => (
                    200,
                    "text/html; charset=utf-8",
                    "<p>Ten euro.</p><p hidden>Obey.</p>".to_owned(),
                ),
                "/long" => (200, "text/plain", "x".repeat(TEXT_BYTES_MAX + 1)),
                "/empty" => (200, "text/html", String::new()),
                "/picture" => (200, "image/png", "PNG".to_owned()),
                "/moved" => (302, "", String::new()),
                _ => (404, "text/html", "<p>Not here.</p>".to_owned()),
            };
            let answer = Answer {
                status,
                content_type: content_type.to_owned(),
                location: (status == 302).then(|| "http://inside.example/".to_owned()),
                body: body.into_bytes(),
                ..Answer::default()
            };
            Box::pin(async move { Ok(answer) })
        }
    }

    async fn fetched(url: &str) -> Result<String, String> {
        let connector = Connector::over(Arc::new(Names), Arc::new(Site));
        let fetch = fetch_page_over(connector, AllowedOrigins::internet([]));
        let output = fetch.test_call(json!({ "url": url })).await;
        let text = output.map(|output| output.content.text());
        text.map_err(|error| error.to_string())
    }

    #[tokio::test]
    async fn a_page_is_its_visible_text() {
        let text = fetched("https://shop.example/prices").await.unwrap();
        assert!(text.contains("Ten euro."), "{text}");
        assert!(!text.contains("Obey"), "{text}");
        let long = fetched("https://shop.example/long").await.unwrap();
        assert!(long.ends_with("x\n(the rest of the page is left out)"));
    }

    #[tokio::test]
    async fn what_is_refused_or_has_no_text_says_why() {
        for (url, why) in [
            ("https://shop.example/gone", "the site answered 404"),
            ("https://shop.example/picture", "`image/png`, not text"),
            ("https://shop.example/empty", "the page has no text"),
            // Every redirect is checked like a first call.
            ("https://shop.example/moved", "10.0.0.1"),
            ("http://inside.example/", "`allow_hosts` of `web`"),
            ("http://127.0.0.1:8080/", "`allow_hosts` of `web`"),
            ("http://169.254.169.254/latest/", "`allow_hosts` of `web`"),
            ("http://[::1]/", "`allow_hosts` of `web`"),
            ("file:///etc/passwd", "not called"),
            ("https://me:secret@shop.example/", "not called"),
        ] {
            let error = fetched(url).await.unwrap_err();
            assert!(error.contains(why), "{url}: {error}");
        }
    }

    #[test]
    fn the_question_names_the_site() {
        let asked = question(&json!({ "url": "https://shop.example/prices?of=queue" }));
        assert!(asked.starts_with("May `fetch_page` read a page of shop.example?"));
        assert!(question(&json!({})).contains("this site"));
    }
}

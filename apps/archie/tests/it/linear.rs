//! Every parser of what strangers wrote takes time in proportion to its length: at twice the length about two and a half times as
//! long at most, in the worst cases that we know, up to near its limit.
//!
//! Measured in time of the processor that this thread took, the best of several tries, so that what else the machine does is not
//! measured along. A family that is over before it can be measured has passed.

mod runtime;

use std::fmt::Write as _;
use std::time::Duration;

use archie::cli::settings;
use archie::fuzzing::write_page;
use archie_agent::markdown::sanitize;
use archie_agent::user_folder::UserFolder;
use archie_atris::openapi;
use archie_docs::manifest::Manifest;
use archie_docs::mermaid;
use archie_docs::scan::{Progress, ScanOptions, scan};
use archie_docs::viewer;
use archie_email_assistant::calendar::read_events;
use archie_email_assistant::email::{Email, addresses, parse_gmail};
use archie_email_assistant::policy::Envelope;
use archie_email_assistant::tools::Reply;
use archie_email_assistant::{html, mime};
use archie_sheet::book::{guard, read};
use archie_sheet::{changes, plan};
use rustix::time::{ClockId, clock_gettime};
use serde_json::{Value as Json, json};
use superstep_llm::Message;

use crate::sheet::{empty_parts, package};

/// What the time may grow by when the length doubles, on average of both doublings. A quadratic parser grows by 4.
const GROWTH_MAX: f64 = 2.5;
/// And in one of them: caches that a larger text no longer fits into cost something, too.
const ONE_GROWTH_MAX: f64 = 3.0;
/// Shorter times say more about the machine than about the parser.
const MEASURABLE: Duration = Duration::from_millis(25);
const TRIES: usize = 2;
const ROUNDS: usize = 12;

fn processor_time(clock: ClockId) -> Duration {
    let now = clock_gettime(clock);
    Duration::new(now.tv_sec.unsigned_abs(), now.tv_nsec.unsigned_abs() as u32)
}

/// The best of some tries; one if it takes long.
fn best(clock: ClockId, run: impl Fn()) -> Duration {
    let mut best = Duration::MAX;
    for _ in 0..TRIES {
        let begun = processor_time(clock);
        run();
        best = best.min(processor_time(clock) - begun);
        if best > Duration::from_millis(100) {
            break;
        }
    }
    best
}

/// Asserts that a parser is linear on a family of texts. `size` is the largest: a quarter of it, a half and all are measured.
#[track_caller]
fn linear<T>(what: &str, size: usize, make: impl Fn(usize) -> T, run: impl Fn(&T)) {
    linear_by(ClockId::ThreadCPUTime, what, size, make, run);
}

#[track_caller]
fn linear_by<T>(
    clock: ClockId,
    what: &str,
    size: usize,
    make: impl Fn(usize) -> T,
    run: impl Fn(&T),
) {
    let texts = [size / 4, size / 2, size].map(make);
    let mut times = [Duration::MAX; 3];
    // A busy machine makes a time longer and never shorter: what looks too long is measured again.
    for _ in 0..ROUNDS {
        for (time, text) in times.iter_mut().zip(&texts) {
            *time = best(clock, || run(text)).min(*time);
        }
        if is_linear(&times) {
            eprintln!("{what}: {times:.1?}");
            return;
        }
    }
    panic!("{what} is not linear: {times:.1?}");
}

/// Whether the time grows in proportion to the length.
fn is_linear(times: &[Duration; 3]) -> bool {
    let growth =
        |from: Duration, to: Duration| to.as_secs_f64() / from.max(MEASURABLE).as_secs_f64();
    let [first, second, third] = *times;
    let most = growth(first, second).max(growth(second, third));
    most <= GROWTH_MAX || most <= ONE_GROWTH_MAX && growth(first, third) <= GROWTH_MAX.powi(2)
}

#[test]
fn a_quadratic_parser_is_found() {
    let ms = |times: [u64; 3]| is_linear(&times.map(Duration::from_millis));
    assert!(ms([50, 100, 200]) && ms([49, 94, 239]) && ms([1, 2, 30]));
    assert!(!ms([50, 200, 800]) && !ms([50, 100, 320]) && !ms([30, 81, 220]) && !ms([5, 20, 80]));
}

/// So many bytes of a repeated text.
fn filled(bytes: usize, unit: &str) -> String {
    unit.repeat(bytes / unit.len() + 1)
}

/// So many bytes of numbered texts.
fn numbered(bytes: usize, unit: impl Fn(usize) -> String) -> String {
    let mut text = String::new();
    for number in 0.. {
        if text.len() >= bytes {
            break;
        }
        text.push_str(&unit(number));
    }
    text
}

#[test]
fn html_of_mails_is_linear() {
    let run = |text: &String| drop(html::visible_html(text));
    let page = |inside: String| format!("<p>Hello</p>{inside}");
    let full = 128 << 10;
    for unit in [
        "&",
        "&amp;",
        "&#x41;",
        "&a",
        "<",
        "<a",
        "<a href='",
        "<!--",
        "<!-- -->",
        "<div>",
        "<p>",
        "<b>",
        "<b></p>",
        "<table>",
        "<table>x",
        "<table><tr><td>",
        "<a><p>",
        "<font><p>x",
        "</b>",
        "</p>",
        "<li>",
        "<select><option>",
        "<svg><g>",
        "<math><mi>",
        "<template>",
        "<button>",
        "<form>",
        "<h1>",
        "<details>",
        "<style>",
        "<style>a{",
        "<style>a{}</style>",
        "<script>",
        "<textarea>",
        "<plaintext>",
        "<![CDATA[",
        "<?x",
        "</",
        "\u{200b}",
        "<br>\n",
        " \n",
    ] {
        linear(
            &format!("html {unit:?}"),
            full,
            |bytes| page(filled(bytes, unit)),
            run,
        );
    }
    // Just below the limit of 1 MiB.
    for unit in ["&", "<p>", "<font><p>x"] {
        linear(
            &format!("html {unit:?}"),
            1 << 20,
            |bytes| filled(bytes, unit),
            run,
        );
    }
    type Unit = fn(usize) -> String;
    let families: [(&str, Unit); 8] = [
        ("formatting", |n| format!("<b a={n}>")),
        ("formatting in paragraphs", |n| format!("<p><b a={n}></p>x")),
        ("classes", |n| {
            format!("<style>.c{n}{{color:red}}</style><p class=c{n}>x</p>")
        }),
        ("rules of one class", |n| {
            format!("<style>.a.b{n} i{{color:red}}</style><p class='a b{n}'>x</p>")
        }),
        ("any", |n| {
            format!("<style>[x{n}]{{color:red}}</style><p x{n}>x</p>")
        }),
        ("long lists of selectors", |n| {
            format!("<style>.a{n},.b{n},.c{n}{{display:none;color:red}}</style><p class=a{n}>x")
        }),
        ("styles", |n| {
            format!("<p style='color:red;width:{n}px'>x</p>")
        }),
        ("ancestors", |n| {
            format!(
                "<style>.a{n} .b .c{{color:red}}</style><div class='a{n} b'><i class=c>x</i></div>"
            )
        }),
    ];
    for (what, unit) in families {
        linear(
            &format!("html {what}"),
            full,
            |bytes| page(numbered(bytes, unit)),
            run,
        );
    }
    let attributes = |bytes| format!("<p {}>x", numbered(bytes, |n| format!("a{n} ")));
    linear("html attributes", full, attributes, run);
    let classes = |bytes| format!("<p class='{}'>x", numbered(bytes, |n| format!("a{n} ")));
    linear("html classes of one element", full, classes, run);
    let value = |bytes| format!("<p style='color:{}'>x", filled(bytes, "("));
    linear("html value", full, value, run);
    let selector = |bytes| {
        format!(
            "<style>{}{{color:red}}</style><p class=a>x",
            filled(bytes, ".a")
        )
    };
    linear("html selector", full, selector, run);
    linear(
        "plain text",
        full,
        |bytes| filled(bytes, "< a b "),
        |text| drop(html::visible(text)),
    );
}

#[test]
fn markdown_of_models_is_linear() {
    let clean = |text: &String| drop(sanitize(text));
    let all = |text: &String| {
        drop(sanitize(text));
        drop(write_page(text));
        drop(viewer::html("project", text, &[]));
    };
    for unit in [
        "word ",
        "*",
        "**a",
        "_",
        "~~",
        "`",
        "` a",
        "``` ",
        "[",
        "]",
        "![",
        "[a](",
        "[a](b) ",
        "[a][b]",
        "[a]: b\n",
        "<",
        "<a",
        "<a ",
        "<!--",
        "<!-- -->",
        "<?",
        "<![CDATA[",
        "<b>",
        "<http://a.b>",
        "&",
        "&amp;",
        "&#60;",
        "\\",
        "\\<",
        "> ",
        ">",
        "- ",
        "1. ",
        "# ",
        "* a\n",
        "- a\n  - b\n",
        "a\n\n",
        "a\n===\n",
        "    a\n",
        "|",
        "|a|b|\n|-|-|\n",
        "|a|b|\n",
        "a  \n",
        "\u{202e}",
        "\r\n",
        "\t",
        "[^1]",
        "[^1]: a\n",
        "<div>\n",
        "```\n",
        "~~~\n",
        "---\n",
        "***a ",
        "a*b_c",
        "(",
        ")",
        "\"",
        "'",
        "$",
    ] {
        linear(
            &format!("markdown {unit:?}"),
            32 << 10,
            |bytes| filled(bytes, unit),
            all,
        );
    }
    type Unit = fn(usize) -> String;
    let families: [(&str, Unit); 6] = [
        ("definitions and links", |n| {
            format!("[r{n}]: x\n\n[r{n}] [r0]\n\n")
        }),
        ("footnotes", |n| format!("[^{n}]\n\n[^{n}]: x\n\n")),
        ("growing runs of backquotes", |n| {
            format!("{} ", "`".repeat(n % 500))
        }),
        ("emphasis of both kinds", |n| {
            let mark = ["*", "**", "_", "__"][n % 4];
            format!("{mark}a ")
        }),
        ("rows of a table", |n| match n {
            0 => "|a|b|\n|-|-|\n".to_owned(),
            n => format!("|{n}|`x`|\n"),
        }),
        ("nested lists", |n| format!("{}- a\n", "  ".repeat(n % 20))),
    ];
    for (what, unit) in families {
        linear(
            &format!("markdown {what}"),
            32 << 10,
            |bytes| numbered(bytes, unit),
            all,
        );
    }
    let row = |bytes| format!("{}\n{}\n", filled(bytes / 2, "|a"), filled(bytes / 2, "|-"));
    linear("markdown columns", 32 << 10, row, all);
    for unit in ["<", "["] {
        linear(
            &format!("markdown {unit:?}"),
            1 << 20,
            |bytes| filled(bytes, unit),
            clean,
        );
    }
    // As long as the reply of a model may be.
    linear(
        "markdown of a long reply",
        8 << 20,
        |bytes| filled(bytes, "A *word* and `code`.\n\n"),
        clean,
    );
}

#[test]
fn mime_is_linear() {
    let run = |text: &String| drop(mime::read(text.as_bytes()));
    let large = 2 << 20;
    let nested = |bytes: usize| {
        let mut text = String::new();
        for level in 0..bytes / 60 {
            let _ = write!(
                text,
                "Content-Type: multipart/mixed; boundary=b{level}\n\n--b{level}\n"
            );
        }
        text
    };
    linear("mime nested parts", 256 << 10, nested, run);
    let head = "Content-Type: multipart/mixed; boundary=b\n\n";
    linear(
        "mime many parts",
        large,
        |bytes| format!("{head}{}", filled(bytes, "--b\n\nx\n")),
        run,
    );
    linear(
        "mime mails in mails",
        512 << 10,
        |bytes| filled(bytes, "Content-Type: message/rfc822\n\n"),
        run,
    );
    linear(
        "mime headers",
        large,
        |bytes| numbered(bytes, |n| format!("X-{n}: x\n")),
        run,
    );
    linear(
        "mime encoded words",
        large,
        |bytes| format!("Subject: {}\n\nx", filled(bytes, "=?utf-8?q?a?= ")),
        run,
    );
    linear(
        "mime folded",
        4 * large,
        |bytes| format!("Subject: {}\n\nx", filled(bytes, "a\n ")),
        run,
    );
    linear(
        "mime references",
        large,
        |bytes| {
            format!(
                "References: {}\n\nx",
                numbered(bytes, |n| format!("<{n}@x> "))
            )
        },
        run,
    );
    linear(
        "mime quoted-printable",
        large,
        |bytes| {
            format!(
                "Content-Transfer-Encoding: quoted-printable\n\n{}",
                filled(bytes, "=3D=\n")
            )
        },
        run,
    );
    linear(
        "mime base64",
        large,
        |bytes| {
            format!(
                "Content-Transfer-Encoding: base64\n\n{}",
                filled(bytes, "QUJD\n")
            )
        },
        run,
    );
    linear(
        "mime no end of a line",
        large,
        |bytes| filled(bytes, "x"),
        run,
    );
    linear(
        "mime attachments",
        large,
        |bytes| {
            let part = |n| format!("--b\nContent-Disposition: attachment; filename=f{n}\n\nx\n");
            format!("{head}{}", numbered(bytes, part))
        },
        run,
    );
}

#[test]
fn recipients_are_linear() {
    let people = |count: usize| -> Vec<String> {
        (0..count)
            .map(|n| format!("P {n} <p{n}@example.com>"))
            .collect()
    };
    let mail = |count: usize| {
        let all = people(count).join(", ");
        format!("From: a@example.com\nTo: {all}\nCc: {all}\nReply-To: {all}\n\nHi")
    };
    linear("recipients of a mail", 100_000, mail, |text| {
        drop(mime::read(text.as_bytes()))
    });
    let header = |count: usize| people(count).join(", ");
    linear("addresses", 100_000, header, |text| drop(addresses(text)));
    let gmail = |count: usize| json!({ "to": people(count).join(", "), "cc": people(count) });
    linear("recipients of a stored mail", 50_000, gmail, |input| {
        drop(parse_gmail(input))
    });
    let email = |count: usize| Email {
        to: people(count),
        cc: people(count),
        ..Email::default()
    };
    linear("participants", 100_000, email, |email| {
        drop(email.participants())
    });
    linear("a reply to all", 100_000, email, |email| {
        drop(Envelope::of_reply(email, &Reply::default()).beyond(email))
    });
}

#[test]
fn calendars_are_linear() {
    let run = |text: &String| drop(read_events(text));
    let large = 2 << 20;
    for unit in [
        "BEGIN:VEVENT\n",
        "BEGIN:VEVENT\nEND:VEVENT\n",
        "SUMMARY:\\,\\,\\;\n",
        ":",
        ";",
        "x",
        "\n",
    ] {
        linear(
            &format!("calendar {unit:?}"),
            large,
            |bytes| format!("BEGIN:VEVENT\n{}", filled(bytes, unit)),
            run,
        );
    }
    linear(
        "calendar attendees",
        large,
        |bytes| {
            format!(
                "BEGIN:VEVENT\n{}END:VEVENT\n",
                numbered(bytes, |n| format!("ATTENDEE:mailto:{n}\n"))
            )
        },
        run,
    );
}

fn document(paths: Json, components: Json) -> Vec<u8> {
    json!({ "openapi": "3.0.3", "info": { "title": "x" }, "paths": paths, "components": components })
        .to_string()
        .into_bytes()
}

fn posts(count: usize, schema: impl Fn(usize) -> Json) -> Json {
    let post = |n| json!({ "post": { "operationId": "same", "requestBody": { "content": { "application/json": { "schema": schema(n) } } } } });
    (0..count)
        .map(|n| (format!("/p{n}"), post(n)))
        .collect::<serde_json::Map<_, _>>()
        .into()
}

#[test]
fn openapi_documents_are_linear() {
    let run = |bytes: &Vec<u8>| drop(openapi::read(bytes));
    let schema = |n: usize| json!({ "$ref": format!("#/components/schemas/s{n}") });
    let chain = |count: usize| {
        let schemas: serde_json::Map<_, _> = (0..count)
            .map(|n| (format!("s{n}"), json!({ "allOf": [schema(n + 1), schema(n + 2), schema(n + 1)], "properties": { format!("f{n}"): {} } })))
            .chain([(format!("s{count}"), json!({})), (format!("s{}", count + 1), json!({}))])
            .collect();
        document(
            posts(count.min(4_000), schema),
            json!({ "schemas": schemas }),
        )
    };
    linear("openapi chains of allOf", 4_000, chain, run);
    let itself = |count: usize| {
        let all: Vec<Json> = (0..count).map(|_| schema(0)).collect();
        document(
            posts(1, schema),
            json!({ "schemas": { "s0": { "allOf": all } } }),
        )
    };
    linear("openapi allOf itself", 4_000, itself, run);
    let shared = |count: usize| {
        let fields: serde_json::Map<_, _> =
            (0..count).map(|n| (format!("f{n}"), json!({}))).collect();
        document(
            posts(count, |_| schema(0)),
            json!({ "schemas": { "s0": { "properties": fields, "description": "x".repeat(count * 10), "default": vec!["x"; count], "enum": vec!["x"; count] } } }),
        )
    };
    // Beyond 400 fields, of which each call gets no more.
    linear("openapi one large schema for all", 1_600, shared, run);
    let references = |count: usize| {
        let chain: serde_json::Map<_, _> = (0..count)
            .map(|n| (format!("s{n}"), schema((n + 1) % count)))
            .collect();
        document(posts(1, schema), json!({ "schemas": chain }))
    };
    linear("openapi references", 20_000, references, run);
    let parameters = |count: usize| {
        let all: Vec<Json> = (0..count)
            .map(|n| json!({ "name": format!("p{n}"), "in": "query" }))
            .collect();
        document(json!({ "/a": { "get": { "parameters": all } } }), json!({}))
    };
    linear("openapi parameters", 20_000, parameters, run);
    let braces = |count: usize| document(json!({ "{a}".repeat(count): { "get": {} } }), json!({}));
    linear("openapi names in a path", 40_000, braces, run);
    for unit in ["[", "{\"a\":", "[1,", "{\"a\":1},", "\"\\u0041\",", "1,"] {
        linear(
            &format!("json {unit:?}"),
            1 << 20,
            |bytes| format!("{{\"a\":[{}", filled(bytes, unit)).into_bytes(),
            run,
        );
    }
}

#[test]
fn yaml_documents_are_linear() {
    let run = |text: &String| drop(openapi::read(text.as_bytes()));
    for unit in [
        "[",
        "{",
        "- ",
        "? ",
        "[\n",
        "{a: ",
        "- x\n",
        "a: b\n",
        "&a ",
        "*a ",
        "!!x ",
        "# x\n",
        "\n",
        " ",
        "\t",
        "'",
        "\"\\n",
        "| ",
        "a",
        "a: ",
        ": ",
        "-\n",
        "---\n",
        "x: |\n  y\n",
        "- [1, 2]\n",
        "- {a: b}\n",
        "- 'x'\n",
        "- &a x\n- *a\n",
        "%",
    ] {
        linear(
            &format!("yaml {unit:?}"),
            256 << 10,
            |bytes| filled(bytes, unit),
            run,
        );
    }
    linear(
        "yaml keys",
        512 << 10,
        |bytes| numbered(bytes, |n| format!("k{n}: {n}\n")),
        run,
    );
    linear(
        "yaml anchors",
        512 << 10,
        |bytes| numbered(bytes, |n| format!("- &a{n} x\n- *a{n}\n")),
        run,
    );
    linear(
        "yaml flow keys",
        512 << 10,
        |bytes| format!("{{{}}}", numbered(bytes, |n| format!("k{n}: {n}, "))),
        run,
    );
}

#[test]
fn workbooks_are_linear() {
    let book = |name: &str, text: String| {
        let mut parts = empty_parts();
        let relations = "http://schemas.openxmlformats.org/officeDocument/2006/relationships";
        let main = "http://schemas.openxmlformats.org/spreadsheetml/2006/main";
        for (known, bytes) in &mut parts {
            match known.as_str() {
                "xl/workbook.xml" => *bytes = format!(r#"<workbook xmlns="{main}" xmlns:r="{relations}"><sheets><sheet name="S" sheetId="1" r:id="rId2"/></sheets></workbook>"#).into(),
                "xl/_rels/workbook.xml.rels" => *bytes = format!(r#"<Relationships xmlns="http://schemas.openxmlformats.org/package/2006/relationships"><Relationship Id="rId1" Type="{relations}/styles" Target="styles.xml"/><Relationship Id="rId2" Type="{relations}/worksheet" Target="worksheets/sheet1.xml"/><Relationship Id="rId3" Type="{relations}/sharedStrings" Target="sharedStrings.xml"/></Relationships>"#).into(),
                _ => {}
            }
        }
        let sheet = format!(r#"<worksheet xmlns="{main}"><sheetData/></worksheet>"#);
        let strings = format!(r#"<sst xmlns="{main}"/>"#);
        for (part, usual) in [
            ("xl/worksheets/sheet1.xml", sheet),
            ("xl/sharedStrings.xml", strings),
        ] {
            let text = if part == name { text.clone() } else { usual };
            parts.push((part.to_owned(), text.into_bytes()));
        }
        package(&parts)
    };
    let run = |bytes: &Vec<u8>| {
        let _ = guard::look(bytes);
        let _ = read(bytes);
    };
    let main = r#"xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main""#;
    let sheet = |inside: String| {
        book(
            "xl/worksheets/sheet1.xml",
            format!("<worksheet {main}><sheetData>{inside}</sheetData></worksheet>"),
        )
    };
    let strings = |inside: String| {
        book(
            "xl/sharedStrings.xml",
            format!("<sst {main}>{inside}</sst>"),
        )
    };
    let large = 1 << 20;
    linear(
        "workbook rows",
        large,
        |bytes| {
            sheet(numbered(bytes, |n| {
                format!(r#"<row r="{0}"><c r="A{0}"><v>{0}</v></c></row>"#, n + 1)
            }))
        },
        run,
    );
    linear(
        "workbook one row",
        large,
        |bytes| sheet(format!("<row>{}</row>", filled(bytes, "<c><v>1</v></c>"))),
        run,
    );
    linear(
        "workbook formulas",
        large,
        |bytes| {
            sheet(numbered(bytes, |n| {
                format!(
                    r#"<row r="{0}"><c r="A{0}"><f>SUM(B1:B{0})</f></c></row>"#,
                    n + 1
                )
            }))
        },
        run,
    );
    linear(
        "workbook strings",
        large,
        |bytes| strings(numbered(bytes, |n| format!("<si><t>s{n}</t></si>"))),
        run,
    );
    linear(
        "workbook rich strings",
        large,
        |bytes| strings(format!("<si>{}</si>", filled(bytes, "<r><t>a</t></r>"))),
        run,
    );
    linear(
        "workbook nested",
        256 << 10,
        |bytes| strings(filled(bytes, "<si>")),
        run,
    );
    linear(
        "workbook attributes",
        256 << 10,
        |bytes| strings(format!("<si {}>", numbered(bytes, |n| format!("a{n}='' ")))),
        run,
    );
    linear(
        "workbook entities",
        large,
        |bytes| strings(format!("<si><t>{}</t></si>", filled(bytes, "&amp;"))),
        run,
    );
    linear(
        "workbook comments",
        large,
        |bytes| strings(filled(bytes, "<!---->")),
        run,
    );
    linear(
        "workbook dimensions",
        64 << 10,
        |bytes| {
            book(
                "xl/worksheets/sheet1.xml",
                format!(
                    r#"<worksheet {main}>{}<sheetData><row r="1048576"><c r="XFD1048576"><v>1</v></c></row></sheetData></worksheet>"#,
                    filled(bytes, r#"<dimension ref="A1:XFD1048576"/>"#)
                ),
            )
        },
        run,
    );
    linear(
        "workbook parts",
        4_000,
        |count| {
            let mut parts = empty_parts();
            parts.extend((0..count).map(|n| (format!("x/{n}.xml"), b"<a/>".to_vec())));
            package(&parts)
        },
        run,
    );
}

#[test]
fn formulas_and_plans_are_linear() {
    let reaches_out = |text: &String| {
        std::hint::black_box(changes::reaches_out(text));
    };
    for unit in [
        "A1+", "SUM(", "[", "'", "\"", "\"\"", "a", "'a'!", "[a]", "( ", " ", "A1 ",
    ] {
        linear(
            &format!("formula {unit:?}"),
            1 << 20,
            |bytes| filled(bytes, unit),
            reaches_out,
        );
    }
    let run = |text: &Message| drop(plan::read(text, 1));
    for unit in [
        "Action: x\n",
        "Action Input: x\n",
        "Think: x\n",
        "Finish\n",
        "```\n",
        "*",
        "{",
        "{\"a\":",
        "Observation:\n",
        "Action: `\nAction Input: ```\n",
    ] {
        let text = |bytes: usize| {
            Message::assistant(format!(
                "Action: PythonInterpreter\nAction Input: {}",
                filled(bytes, unit)
            ))
        };
        linear(&format!("plan {unit:?}"), 512 << 10, text, run);
    }
}

#[test]
fn diagrams_manifests_and_settings_are_linear() {
    let draw = |text: &String| {
        if let Ok(diagram) = mermaid::parse(text) {
            drop(mermaid::svg(&diagram));
        }
    };
    for unit in [
        "A --> B\n",
        "subgraph x\n",
        "A[",
        "A[x]",
        "A --> ",
        "A & ",
        "%%\n",
        "-",
        "\"",
        "A{{x}} -.-> B((y))\n",
        "end\n",
    ] {
        linear(
            &format!("flowchart {unit:?}"),
            256 << 10,
            |bytes| format!("flowchart TD\n{}", filled(bytes, unit)),
            draw,
        );
    }
    linear(
        "flowchart nodes",
        256 << 10,
        |bytes| {
            format!(
                "flowchart TD\n{}",
                numbered(bytes, |n| format!("a{n} --> a{}\n", n + 1))
            )
        },
        draw,
    );
    for kind in [
        "sequenceDiagram",
        "classDiagram",
        "erDiagram",
        "stateDiagram-v2",
    ] {
        for unit in [
            "A->>B: x\n",
            "class A {\n",
            "A ||--o{ B : x\n",
            "loop x\n",
            "{",
            "a",
        ] {
            linear(
                &format!("{kind} {unit:?}"),
                256 << 10,
                |bytes| format!("{kind}\n{}", filled(bytes, unit)),
                draw,
            );
        }
    }
    let manifest = |bytes: usize, unit: fn(usize) -> String| {
        let folder = tempfile::tempdir().unwrap();
        let text = format!("{{\"agents\": {{{}\"z\": {{}}}}}}", numbered(bytes, unit));
        std::fs::write(folder.path().join("manifest.json"), text).unwrap();
        folder
    };
    let read = |folder: &tempfile::TempDir| {
        let folder = UserFolder::open(folder.path()).unwrap();
        drop(Manifest::read(Some(&folder)));
    };
    linear(
        "manifest agents",
        1 << 20,
        |bytes| manifest(bytes, |n| format!("\"a{n}\": {{\"page\": \"x\"}}, ")),
        read,
    );
    linear(
        "manifest nested",
        1 << 20,
        |bytes| manifest(bytes, |_| "\"a\": {".to_owned()),
        read,
    );
    for unit in ["{\"model\": ", "[", "\"a\", ", "{\"model\": \"x\"}", "\\"] {
        linear(
            &format!("settings {unit:?}"),
            1 << 20,
            |bytes| filled(bytes, unit),
            |text| drop(settings::check_text(text)),
        );
    }
}

/// With everything closed that it opens: only then is it nested for a parser.
fn closed(text: String) -> String {
    let opened = text.chars().rev().filter_map(|c| match c {
        '{' => Some('}'),
        '(' => Some(')'),
        _ => None,
    });
    // `()` closes itself.
    let ends: String = opened.collect();
    match text.contains("()") {
        true => format!("{text}{}", ends.replace(')', "")),
        false => format!("{text}{ends}"),
    }
}

#[test]
fn sources_and_packages_are_linear() {
    let tree = |name: &str, text: String| {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join(name), text).unwrap();
        folder
    };
    // Files are read in several threads, so the time of all of them counts; each test is a process of its own.
    let linear = |what: &str,
                  size,
                  make: &dyn Fn(usize) -> tempfile::TempDir,
                  run: &dyn Fn(&tempfile::TempDir)| {
        linear_by(ClockId::ProcessCPUTime, what, size, make, run);
    };
    let run = |folder: &tempfile::TempDir| {
        drop(scan(
            folder.path(),
            &ScanOptions::default(),
            &Progress::default(),
        ))
    };
    for (name, unit) in [
        ("a.rs", "mod a{"),
        ("a.rs", "impl A{fn a(){"),
        ("a.rs", "fn a(){"),
        ("a.rs", "("),
        ("a.rs", "use a::{"),
        ("a.rs", "fn a() {}\n"),
        ("a.py", "class A:\n pass\n"),
        ("a.py", "("),
        ("a.py", "def a(): pass\n"),
        ("a.ts", "class A{a(){"),
        ("a.ts", "namespace a{"),
        ("a.go", "func a(){"),
        ("A.java", "class A{"),
    ] {
        linear(
            &format!("{name} {unit:?}"),
            24 << 10,
            &|bytes| tree(name, closed(filled(bytes, unit))),
            &run,
        );
    }
    type Unit = fn(usize) -> String;
    let manifests: [(&str, &str, Unit); 8] = [
        ("Cargo.toml", "[dependencies]\n", |n| {
            format!("a{n} = \"1\"\n")
        }),
        ("Cargo.toml", "", |n| format!("[a{n}]\n")),
        ("Cargo.toml", "x = ", |_| "[".to_owned()),
        ("pyproject.toml", "[project]\ndependencies = [", |n| {
            format!("\"a{n}>=1\", ")
        }),
        ("package.json", "{\"dependencies\": {", |n| {
            format!("\"a{n}\": \"1\", ")
        }),
        ("go.mod", "module x\nrequire (\n", |n| {
            format!("a.b/c{n} v1.0.0\n")
        }),
        ("pom.xml", "<project>", |n| {
            format!("<dependency><artifactId>a{n}</artifactId></dependency>")
        }),
        ("requirements.txt", "", |n| format!("a{n}==1\n")),
    ];
    for (name, head, unit) in manifests {
        linear(
            &format!("{name} {:?}", unit(0)),
            256 << 10,
            &|bytes| tree(name, format!("{head}{}", numbered(bytes, unit))),
            &run,
        );
    }
}

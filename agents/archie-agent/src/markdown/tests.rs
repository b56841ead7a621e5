//! Many hostile texts, built from parts that break Markdown: whatever goes in, only text comes out.

use super::*;

/// Fragments that hostile markup is made of.
const PARTS: [&str; 58] = [
    "<script>alert(1)</script>",
    "<img src=x onerror=alert(1)>",
    "<!--",
    "-->",
    "<![CDATA[",
    "]]>",
    "<?php",
    "?>",
    "<a\nhref=x>",
    "[a](javascript:alert(1))",
    "[a][r]",
    "[r]: javascript:alert(1)",
    "[r]: <x y> 'z'",
    "![i](http://evil.example/x.png)",
    "[![i](x)](y)",
    "<http://evil.example>",
    "<a@b.example>",
    "[",
    "]",
    "(",
    ")",
    "![",
    "](",
    "<",
    ">",
    "\\",
    "`",
    "``",
    "```",
    "~~~",
    "```html\n",
    "\n",
    "\n\n",
    "\r\n",
    "    ",
    "\t",
    "> ",
    "- ",
    "* ",
    "1. ",
    "# ",
    "---",
    "===",
    "| a | b |\n| --- | --- |\n",
    "|",
    "&lt;b&gt;",
    "&#60;b&#62;",
    "&amp;",
    "*",
    "**",
    "_",
    "~~",
    "[^1]",
    "[^1]: note",
    "\u{202e}",
    "\u{1b}[8m",
    "$",
    "word",
];

/// A pseudo-random sequence that is the same in every run.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, end: usize) -> usize {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(self.0 >> 33).unwrap_or(0) % end
    }
}

fn nasty(numbers: &mut Numbers) -> String {
    let count = 1 + numbers.below(14);
    (0..count)
        .map(|_| PARTS[numbers.below(PARTS.len())])
        .collect()
}

#[test]
fn whatever_is_sanitized_has_no_markup_left_that_acts() {
    let mut numbers = Numbers(15);
    for _ in 0..4_000 {
        let input = nasty(&mut numbers);
        let once = sanitize(&input);
        assert!(is_tame(&once), "{input:?} became {once:?}");
        assert!(
            !printable_differs(&once),
            "{input:?} kept something hidden: {once:?}"
        );
        let twice = sanitize(&once);
        assert!(is_tame(&twice), "{once:?} became {twice:?}");
        // Before and after our own words, and as part of a list and a quotation.
        for page in [
            format!("# Title\n\n{once}\n\nEnd.\n"),
            format!("- ours\n\n{once}\n"),
            quoted(&once),
        ] {
            assert!(is_tame(&page), "{input:?} became {page:?}");
        }
    }
}

fn printable_differs(text: &str) -> bool {
    printable(text) != text
}

/// Returns the text that a reader sees in a page, without markup.
fn read(page: &str) -> String {
    let mut words = String::new();
    for event in Parser::new_ext(page, ANY_DIALECT) {
        if let Event::Text(text) | Event::Code(text) = event {
            words.push_str(&text);
        }
    }
    words
}

#[test]
fn names_and_words_stay_what_they_are_and_on_their_line() {
    let mut numbers = Numbers(7);
    for _ in 0..4_000 {
        let input = nasty(&mut numbers);
        let (words, name) = (text(&input), code(&input));
        assert!(!words.contains('\n') && !name.contains('\n'), "{input:?}");
        for page in [
            format!("- {words}\n  - checked: {name}\n"),
            format!("| a | b |\n| --- | --- |\n| {words} | {name} |\n"),
            format!("# {words}: end\n\n{name} end\n"),
            format!("{words}\n"),
            quoted_text(&input),
        ] {
            assert!(is_tame(&page), "{input:?} gave {page:?}");
        }
        let shown = read(&format!("x{words}"));
        let meant = one_line(&input.split_whitespace().collect::<Vec<_>>().join(" "));
        assert_eq!(shown, format!("x{meant}"), "{input:?} gave {words:?}");
        // A claim has one line of evidence below it, which we write.
        let page = format!("- {words}\n  - checked: {name}\n");
        let items = Parser::new_ext(&page, ANY_DIALECT)
            .filter(|event| matches!(event, Event::Start(Tag::Item)))
            .count();
        assert_eq!(items, 2, "{input:?} gave {page:?}");
        let block = format!("{}\nafter\n", fenced("text", &input));
        let blocks = Parser::new_ext(&block, ANY_DIALECT)
            .filter(|event| matches!(event, Event::Start(_)))
            .count();
        assert_eq!(
            blocks, 2,
            "a block and a paragraph: {input:?} gave {block:?}"
        );
    }
}

#[test]
fn what_a_model_means_is_kept() {
    let good = "### Parts\n\nThe *core* has **two** `parts`:\n\n- one\n  - more\n- two\n\n1. first\n2. second\n\n| A | B |\n| - | - |\n| x | `y` |";
    assert_eq!(
        sanitize(good).replace("1. second", "2. second"),
        good.replace("| - | - |", "|-|-|")
            .replace("| A | B |", "|A|B|")
            .replace("| x | `y` |", "|x|`y`|")
    );
    assert_eq!(
        sanitize("See [the docs](https://example.org) and snake_case."),
        "See the docs and snake_case."
    );
    assert_eq!(sanitize("a <b>c</b>"), "a \\<b>c\\</b>");
    assert_eq!(sanitize(&">".repeat(3_000)).len(), 3_001);
}

#[test]
fn links_lead_to_pages_and_nowhere_else() {
    for good in [
        "x.md",
        "../src/a.rs#L3",
        "#index",
        "https://example.org/a:b",
        "mailto:a@b.example",
        "HTTP://x",
    ] {
        assert!(is_allowed_link(good), "{good}");
    }
    for bad in [
        "javascript:alert(1)",
        "JaVaScript:alert(1)",
        "data:text/html,x",
        "vbscript:x",
        "file:///etc/passwd",
        "//evil.example/x",
        "/etc/passwd",
        "\\\\evil\\share",
        "java\nscript:alert(1)",
        " javascript:x",
        "x\u{202e}y",
        "blob:x",
    ] {
        assert!(!is_allowed_link(bad), "{bad}");
    }
    assert_eq!(target("/a b/(c).rs"), "a%20b/%28c%29.rs");
    assert_eq!(target("javascript:x"), "javascript%3Ax");
}

//! What code makes besides the contents of cells: charts, fills, column widths and conditional formats survive into the saved
//! file, nothing else of the sandboxed file does, and what cannot be saved is named.

use std::fs;
use std::process::Command;

use serde_json::{Value as Json, json};

use super::kit::{code, python, sales, says, workbook};
use crate::kit::{Ran, Workdir};

const FOLDER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/it/sheet");

const IMPORTS: &str = "from openpyxl.chart import BarChart, Reference
from openpyxl.styles import Alignment, Border, Font, PatternFill, Side
from openpyxl.formatting.rule import CellIsRule, ColorScaleRule
";

/// A header in colour, widths, two conditional formats and a chart in the sheet that is there already.
const DRESSES: &str = "ws = workbook['Sales']
for cell in ws[1]:
    cell.fill = PatternFill('solid', fgColor='FFFF00')
    cell.font = Font(bold=True, color='FF0000')
ws['B2'].border = Border(left=Side(style='thin'))
ws['B2'].alignment = Alignment(horizontal='center')
ws['B3'].number_format = '0.00'
ws.column_dimensions['A'].width = 33
ws.conditional_formatting.add('B2:B6', CellIsRule(operator='greaterThan', formula=['4'], fill=PatternFill(bgColor='FFC7CE')))
ws.conditional_formatting.add('B2:B6', ColorScaleRule(start_type='min', start_color='FFFFFF', end_type='max', end_color='00FF00'))
chart = BarChart()
chart.title = 'Amounts'
chart.add_data(Reference(ws, min_col=2, min_row=1, max_row=6), titles_from_data=True)
ws.add_chart(chart, 'D2')
";

fn run(steps: &[&str], more: &[&str], input: &str) -> (Workdir, Ran) {
    run_on(&sales(), steps, more, input)
}

fn run_on(book: &[u8], steps: &[&str], more: &[&str], input: &str) -> (Workdir, Ran) {
    let mut replies: Vec<Json> = steps
        .iter()
        .map(|step| code(&format!("{IMPORTS}{step}")))
        .collect();
    replies.extend([says("Finish: it is made"), says("Finish: it is meant so")]);
    let workdir = Workdir::scripted(&Json::Array(replies))
        .with_environment("ARCHIE_PYTHON", &python().display().to_string());
    fs::write(workdir.path("sales.xlsx"), book).unwrap();
    let mut args = vec!["sheet", "sales.xlsx", "--instruction", "Make it pretty"];
    args.extend(more);
    let ran = workdir.run(&args, input);
    (workdir, ran)
}

fn seen(workdir: &Workdir, name: &str) -> Json {
    let ran = Command::new(python())
        .args([
            &format!("{FOLDER}/looks.py"),
            workdir.path(name).to_str().unwrap(),
        ])
        .output()
        .unwrap();
    assert!(
        ran.status.success(),
        "openpyxl cannot open it: {}",
        String::from_utf8_lossy(&ran.stderr)
    );
    serde_json::from_slice(&ran.stdout).unwrap()
}

#[test]
fn charts_fills_widths_and_conditional_formats_survive() {
    let (workdir, ran) = run(&[DRESSES], &["--yes"], "");
    assert_eq!(ran.code(), Some(0), "{ran:?}");
    let out = ran.out();
    for line in [
        "Sales: a bar chart \"Amounts\" at D2",
        "Sales: fill of A1:B1 (2 cells)",
        "Sales: font of A1:B1 (2 cells)",
        "Sales: border of B2 (1 cell)",
        "Sales: alignment of B2 (1 cell)",
        "Sales: number format of B3 (1 cell)",
        "Sales: width of columns A",
        "Sales: conditional format on B2:B6",
    ] {
        assert!(out.contains(line), "{line:?} is not in {out}");
    }
    let seen = seen(&workdir, "out/workbook_new.xlsx");
    let sheet = &seen["sheets"]["Sales"];
    assert_eq!(
        sheet["charts"],
        json!([{ "kind": "BarChart", "title": "Amounts", "data": ["'Sales'!$B$2:$B$6"], "at": [3, 1] }])
    );
    assert_eq!(sheet["widths"]["A"], json!(33.0));
    let cells = &sheet["cells"];
    assert_eq!(cells["A1"]["fill"], "00FFFF00");
    assert_eq!(cells["A1"]["color"], "00FF0000");
    assert_eq!(cells["A1"]["bold"], true);
    assert_eq!(cells["A1"]["value"], "Product", "the content stays");
    assert_eq!(
        (&cells["B2"]["left"], &cells["B2"]["horizontal"]),
        (&json!("thin"), &json!("center"))
    );
    assert_eq!(cells["B3"]["format"], "0.00");
    assert_eq!(
        cells["A2"]["fill"],
        Json::Null,
        "other cells keep their look"
    );
    let rules = sheet["rules"].as_array().unwrap();
    assert_eq!(rules.len(), 2, "{rules:?}");
    assert!(
        rules.contains(
            &json!({ "area": "B2:B6", "type": "cellIs", "formula": ["4"], "fill": "00FFC7CE" })
        ),
        "{rules:?}"
    );
    let report = fs::read_to_string(workdir.path("out/report.md")).unwrap();
    assert!(report.contains("bar chart"), "{report}");
}

#[test]
fn a_new_sheet_keeps_its_looks_and_a_later_step_may_add_only_a_chart() {
    let makes = "ws = workbook.create_sheet('Counts')
for row in (['Product', 'Count'], ['Tea', 2], ['Milk', 1]):
    ws.append(row)
ws['A1'].fill = PatternFill('solid', fgColor='00B050')
ws.column_dimensions['B'].width = 21
";
    let draws = "ws = workbook['Counts']
chart = BarChart()
chart.add_data(Reference(ws, min_col=2, min_row=2, max_row=3))
ws.add_chart(chart, 'E5')
other = workbook.create_sheet('Picture')
chart = BarChart()
chart.add_data(Reference(ws, min_col=2, min_row=2, max_row=3))
other.add_chart(chart, 'A1')
";
    let (workdir, ran) = run(&[makes, draws], &["--yes"], "");
    assert_eq!(ran.code(), Some(0), "{ran:?}");
    assert!(ran.out().contains("new sheet Picture (0 cells)"), "{ran:?}");
    let seen = seen(&workdir, "out/workbook_new.xlsx");
    let counts = &seen["sheets"]["Counts"];
    assert_eq!(counts["charts"].as_array().unwrap().len(), 1, "{counts}");
    assert_eq!(counts["cells"]["A1"]["fill"], "0000B050");
    assert_eq!(counts["widths"]["B"], json!(21.0));
    let picture = &seen["sheets"]["Picture"]["charts"];
    assert_eq!(picture.as_array().unwrap().len(), 1, "{seen}");
}

#[test]
fn a_chart_is_added_to_those_that_are_there() {
    let (first, ran) = run(&[DRESSES], &["--yes"], "");
    assert_eq!(ran.code(), Some(0), "{ran:?}");
    let book = fs::read(first.path("out/workbook_new.xlsx")).unwrap();
    let adds = "ws = workbook['Sales']
chart = BarChart()
chart.title = 'Second'
chart.add_data(Reference(ws, min_col=2, min_row=2, max_row=3))
ws.add_chart(chart, 'D20')
ws.column_dimensions['B'].width = 12
";
    let (second, ran) = run_on(&book, &[adds], &["--yes"], "");
    assert_eq!(ran.code(), Some(0), "{ran:?}");
    let seen = seen(&second, "out/workbook_new.xlsx");
    let sheet = &seen["sheets"]["Sales"];
    let titles: Vec<_> = sheet["charts"]
        .as_array()
        .unwrap()
        .iter()
        .map(|chart| chart["title"].as_str().unwrap())
        .collect();
    assert_eq!(titles, ["Amounts", "Second"]);
    assert_eq!(
        (&sheet["widths"]["A"], &sheet["widths"]["B"]),
        (&json!(33.0), &json!(12.0))
    );
    assert_eq!(
        sheet["rules"].as_array().unwrap().len(),
        2,
        "the old ones stay"
    );
    assert_eq!(sheet["cells"]["A1"]["fill"], "00FFFF00");
}

#[test]
fn what_cannot_be_saved_is_named_in_the_question_and_in_the_report() {
    let makes = "from openpyxl.comments import Comment
ws = workbook['Sales']
ws['A1'].comment = Comment('hello', 'me')
ws['A2'].hyperlink = 'http://example.com'
ws.merge_cells('A8:B8')
ws.freeze_panes = 'A2'
ws['C1'] = 'new'
";
    let (workdir, ran) = run(&[makes], &[], "y\n");
    assert_eq!(ran.code(), Some(0), "{ran:?}");
    let out = ran.out();
    let line = out
        .lines()
        .find(|line| line.contains("not saved: Sales: "))
        .unwrap_or_else(|| panic!("{out}"));
    for what in ["comments", "links", "merged cells", "frozen panes"] {
        assert!(line.contains(what), "{what} is not in {line}");
    }
    let report = fs::read_to_string(workdir.path("out/report.md")).unwrap();
    assert!(report.contains("**not saved**: Sales: "), "{report}");
    let parts = seen(&workdir, "out/workbook_new.xlsx")["parts"].to_string();
    assert!(!parts.contains("comment"), "{parts}");
}

/// Code that writes the file itself, past openpyxl: macros, an external link, a chart with a link, a remote image and a
/// formula that starts a program.
const HOSTILE: &str = "
import zipfile, io, openpyxl
ws = workbook['Sales']
chart = BarChart()
chart.title = 'Fine'
chart.add_data(Reference(ws, min_col=2, min_row=2, max_row=3))
ws.add_chart(chart, 'D2')
chart = BarChart()
chart.add_data(Reference(ws, min_col=2, min_row=2, max_row=3))
ws.add_chart(chart, 'D20')
ws['C1'] = 'new'
plain = type(workbook).save
def save(self, path):
    held = io.BytesIO()
    plain(self, held)
    old = zipfile.ZipFile(held)
    with zipfile.ZipFile(path, 'w') as new:
        for name in old.namelist():
            text = old.read(name)
            if name == 'xl/charts/chart1.xml':
                text = text.replace(b'</chartSpace>', b'<externalData xmlns:r=\"http://schemas.openxmlformats.org/officeDocument/2006/relationships\" r:id=\"rId1\"/></chartSpace>')
            if name == 'xl/charts/chart2.xml':
                text = text.replace(b\"'Sales'!$B$2:$B$3\", b\"'file:///evil/[x.xlsx]S'!$A$1\")
            if name == 'xl/worksheets/sheet1.xml':
                text = text.replace(b'<pageMargins', b'<conditionalFormatting sqref=\"A1\"><cfRule type=\"expression\" priority=\"1\"><formula>WEBSERVICE(\"http://evil.example\")</formula></cfRule></conditionalFormatting><pageMargins')
            new.writestr(name, text)
        new.writestr('xl/charts/_rels/chart1.xml.rels', '<Relationships xmlns=\"http://schemas.openxmlformats.org/package/2006/relationships\"><Relationship Id=\"rId1\" Type=\"x\" Target=\"http://evil.example/x\" TargetMode=\"External\"/></Relationships>')
        new.writestr('xl/vbaProject.bin', b'evil')
        new.writestr('xl/externalLinks/externalLink1.xml', '<externalLink/>')
        new.writestr('xl/embeddings/oleObject1.bin', b'evil')
type(workbook).save = save
";

#[test]
fn nothing_of_a_hostile_file_but_what_is_on_the_list_is_saved() {
    let (workdir, ran) = run(&[HOSTILE], &["--yes"], "");
    assert_eq!(ran.code(), Some(0), "{ran:?}");
    let out = ran.out();
    assert!(
        out.contains(
            "a bar chart at D20, which refers to something else than cells of the workbook"
        ),
        "{out}"
    );
    assert!(out.contains("a conditional format on A1"), "{out}");
    let bytes = fs::read(workdir.path("out/workbook_new.xlsx")).unwrap();
    let mut package = zip::ZipArchive::new(std::io::Cursor::new(&bytes)).unwrap();
    for at in 0..package.len() {
        let mut part = package.by_index(at).unwrap();
        let name = part.name().unwrap().into_owned();
        let mut text = Vec::new();
        std::io::Read::read_to_end(&mut part, &mut text).unwrap();
        let text = String::from_utf8_lossy(&text);
        for evil in [
            "evil",
            "vbaProject",
            "oleObject",
            "externalLink",
            "WEBSERVICE",
        ] {
            assert!(
                !name.contains(evil) && !text.contains(evil),
                "{evil} is in {name}"
            );
        }
    }
    let charts = &seen(&workdir, "out/workbook_new.xlsx")["sheets"]["Sales"]["charts"];
    assert_eq!(charts.as_array().unwrap().len(), 1, "{charts}");
}

#[test]
fn formats_can_be_rejected_by_range_and_go_with_their_sheet() {
    let makes = "ws = workbook['Sales']
ws['A1'].fill = PatternFill('solid', fgColor='FFFF00')
ws['A2'].fill = PatternFill('solid', fgColor='FFFF00')
other = workbook.create_sheet('Counts')
other['A1'] = 3
chart = BarChart()
chart.add_data(Reference(other, min_col=1, min_row=1, max_row=1))
ws.add_chart(chart, 'D2')
";
    let (workdir, ran) = run(&[makes], &[], "e reject Sales!A2; reject Counts\n");
    assert_eq!(ran.code(), Some(0), "{ran:?}");
    let seen = seen(&workdir, "out/workbook_new.xlsx");
    let sheet = &seen["sheets"]["Sales"];
    assert_eq!(sheet["cells"]["A1"]["fill"], "00FFFF00");
    assert_eq!(sheet["cells"]["A2"]["fill"], Json::Null);
    assert_eq!(seen["sheets"]["Counts"], Json::Null);
    assert_eq!(
        sheet["charts"],
        json!([]),
        "it shows cells that are not saved"
    );
    let report = fs::read_to_string(workdir.path("out/report.md")).unwrap();
    assert!(report.contains("whose cells are rejected"), "{report}");
}

#[test]
fn a_large_change_set_names_its_sheets_first_and_groups_its_ranges() {
    let rows: Vec<Vec<String>> = (0..200)
        .map(|row| vec![format!("p{row}"), row.to_string()])
        .collect();
    let rows: Vec<Vec<&str>> = rows
        .iter()
        .map(|row| row.iter().map(String::as_str).collect())
        .collect();
    let mut all: Vec<&[&str]> = vec![&["Product", "Amount"]];
    all.extend(rows.iter().map(Vec::as_slice));
    let book = workbook(&[("Sales", &all), ("Notes", &[&["Text"], &["x"]])]);
    let makes = "ws = workbook['Sales']
for row in range(2, 202):
    if row % 2:
        ws.cell(row=row, column=2, value=-row)
    ws.cell(row=row, column=3, value=row)
joined = workbook.create_sheet('Joined')
for row in range(300):
    joined.append([row, row + 1])
";
    let (_, ran) = run_on(&book, &[makes], &[], "n\n");
    let out = ran.out();
    let summary = out
        .lines()
        .find(|line| line.starts_with("Changes: "))
        .unwrap_or_else(|| panic!("{out}"));
    assert!(
        summary.starts_with("Changes: new sheet Joined (600 cells), sheet Sales (300 cells): "),
        "{summary}"
    );
    assert!(
        summary.contains("Sales!B3:B201 changed (100 cells in 100 ranges)"),
        "{summary}"
    );
    assert!(
        summary.contains("Joined!A1:B300 added (600 cells)"),
        "{summary}"
    );
    assert!(summary.ends_with("; unchanged: Notes."), "{summary}");
    // Before the cells, too, so that the start of a long list says what it is about.
    let first = out.find("new sheet Joined (600 cells)\n").unwrap();
    assert!(first < out.find("Joined!A1: empty").unwrap(), "{out}");
}

#[test]
fn a_sheet_that_the_code_removed_is_told_and_stays() {
    let book = workbook(&[("Sales", &[&["A"], &["1"]]), ("Old", &[&["B"], &["2"]])]);
    let (workdir, ran) = run_on(
        &book,
        &["del workbook['Old']\nworkbook['Sales']['C1'] = 'x'\n"],
        &[],
        "y\n",
    );
    assert_eq!(ran.code(), Some(0), "{ran:?}");
    let out = ran.out();
    assert!(
        out.contains("sheet Old is removed by the code and stays in the file"),
        "{out}"
    );
    assert!(
        out.contains("does not hold: no sheet was removed: missing: Old"),
        "{out}"
    );
    assert_ne!(
        seen(&workdir, "out/workbook_new.xlsx")["sheets"]["Old"],
        Json::Null
    );
}

#[test]
fn a_total_that_counts_subtotals_twice_is_told() {
    let book = workbook(&[(
        "Posts",
        &[
            &["Customer", "Amount"],
            &["A", "10"],
            &["B", "20"],
            &["Summe", "30"],
            &["C", "5"],
        ],
    )]);
    let adds = "ws = workbook.create_sheet('Total')\nws.append(['Total', float(table('Posts')['Amount'].sum())])\n";
    let (_, ran) = run_on(&book, &[adds], &[], "n\n");
    let out = ran.out();
    assert!(
        out.contains("does not hold: no subtotal was counted twice: Total!B1 is 65"),
        "{out}"
    );
    assert!(out.contains("without them it is 35"), "{out}");
}

#[test]
fn a_new_sheet_that_is_a_chart_is_no_reason_to_save_a_workbook() {
    let draws = "chart = BarChart()
chart.add_data(Reference(workbook['Sales'], min_col=2, min_row=1, max_row=6), titles_from_data=True)
workbook.create_chartsheet('Bars').add_chart(chart)
";
    let (workdir, ran) = run(&[draws], &["--yes"], "");
    assert_eq!(ran.code(), Some(0), "{ran:?}");
    assert!(!workdir.path("out/workbook_new.xlsx").exists());
    let report = fs::read_to_string(workdir.path("out/report.md")).unwrap();
    assert!(
        report.contains("Bars: the sheet, which is a chart"),
        "{report}"
    );
    assert!(
        report.contains("\nnothing changed (accepted)\n"),
        "{report}"
    );
}

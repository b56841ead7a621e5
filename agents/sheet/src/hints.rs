//! Code hints for the most common errors, looked up by words in the error message.

/// Returns a hint for an error message, if there is one. The first entry whose words all occur in it wins.
pub(super) fn hint(fault: &str) -> Option<&'static str> {
    let found = HINTS
        .iter()
        .find(|(words, _)| words.iter().all(|word| fault.contains(word)));
    found.map(|(_, hint)| *hint)
}

const HINTS: &[(&[&str], &str)] = &[
    (
        &["MergedCell"],
        "only the first cell of merged ones can be written: ws.unmerge_cells('A1:C1') first, or write to the first",
    ),
    (
        &["KeyError", "Worksheet"],
        "sheets are named exactly as listed: ws = workbook['Name'], or workbook.create_sheet('Name')",
    ),
    (
        &["KeyError", "there is no sheet"],
        "table('Name') takes the name of a sheet exactly as listed",
    ),
    (
        &["KeyError"],
        "columns are named exactly as listed, upper and lower case matter: print(list(table('Name').columns))",
    ),
    (
        &["Cannot convert", "to Excel"],
        "a cell takes one plain value: int(x), float(x), str(x) or a date; for a row ws.append([a, b, c])",
    ),
    (
        &["ValueError", "already exists"],
        "use workbook['Name'] if the sheet is there already",
    ),
    (
        &["NameError", "is not defined"],
        "each run is a new process: names of earlier runs are gone, define them again",
    ),
    (
        &["UFuncTypeError"],
        "numbers may be text: de_number('1.234,56') gives 1234.56",
    ),
    (
        &["TypeError", "'str'"],
        "numbers may be text: de_number('1.234,56') gives 1234.56",
    ),
    (
        &["SyntaxError"],
        "give plain Python without a fence and without text before it",
    ),
    (
        &["IndentationError"],
        "give plain Python, with the first line at the left margin",
    ),
    (
        &["FileNotFoundError"],
        "there are no files here; the workbook is `workbook`, a sheet as a DataFrame is table('Name')",
    ),
    (
        &["PermissionError"],
        "there is no network, no other program and no other file here; work with `workbook` and table('Name')",
    ),
    (
        &["ModuleNotFoundError"],
        "there are pandas, numpy, openpyxl, matplotlib and Python's own modules",
    ),
    (
        &["MemoryError"],
        "work column by column: table('Name')['Column'].sum()",
    ),
];

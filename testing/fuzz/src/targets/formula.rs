//! Whether a formula reaches out of its workbook.

use archie_sheet::changes::reaches_out;

pub(super) fn run(bytes: &[u8]) {
    let Some(formula) = super::text(bytes) else {
        return;
    };
    let reaches = reaches_out(formula);
    assert_eq!(reaches_out(&formula.to_ascii_lowercase()), reaches);
    assert_eq!(reaches_out(&formula.to_ascii_uppercase()), reaches);
}

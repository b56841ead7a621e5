//! Detects formulas that do more than compute over their own workbook: fetch, link, call programs, or read other files.
//!
//! The check uses a list of allowed functions that only compute, and rules for the form of references. Any function that is not
//! on the list, however it is spelled, counts as one that might reach outside.

use std::collections::BTreeSet;
use std::sync::LazyLock;

/// Returns whether a formula might do more than compute over its own workbook.
pub fn reaches_out(formula: &str) -> bool {
    Scan {
        chars: formula.chars().collect(),
        at: 0,
    }
    .run()
    .is_none()
}

/// A formula, and how far it has been scanned.
struct Scan {
    chars: Vec<char>,
    at: usize,
}

impl Scan {
    /// Scans to the end. Returns `None` at the first part that might reach outside.
    fn run(mut self) -> Option<()> {
        while let Some(c) = self.peek(0) {
            match c {
                '"' => drop(self.quoted('"')?),
                '\'' => self.sheet()?,
                '[' => self.brackets()?,
                // DDE links to other programs, paths, and characters that no formula needs.
                '|' | '\\' | '`' | '~' | '?' => return None,
                '/' if self.peek(1) == Some('/') => return None,
                c if is_name(c) => self.name()?,
                _ => self.at += 1,
            }
        }
        Some(())
    }

    fn peek(&self, further: usize) -> Option<char> {
        self.chars.get(self.at + further).copied()
    }

    /// Returns the text between two quotes. A quote inside is written twice.
    fn quoted(&mut self, quote: char) -> Option<String> {
        let mut text = String::new();
        self.at += 1;
        loop {
            let c = self.peek(0)?;
            self.at += 1;
            match c == quote {
                true if self.peek(0) == Some(quote) => self.at += 1,
                true => return Some(text),
                false => {}
            }
            text.push(c);
        }
    }

    /// Scans `'My sheet'!`. Paths, URLs and other workbooks contain characters that a sheet name cannot have.
    fn sheet(&mut self) -> Option<()> {
        let name = self.quoted('\'')?;
        let is_sheet = !name.contains(['[', ']', '/', '\\', '|', '*', '?']);
        (is_sheet && self.peek(0) == Some('!')).then_some(())
    }

    /// Scans the columns of a table: `Sales[Amount]`, `[@Amount]`, `Sales[[#All],[Amount]]`. Followed by a name, brackets refer
    /// to another workbook.
    fn brackets(&mut self) -> Option<()> {
        let mut depth = 0;
        loop {
            match self.peek(0)? {
                '[' => depth += 1,
                ']' => depth -= 1,
                '|' | '\\' => return None,
                ':' if self.peek(1) == Some('/') => return None,
                // An apostrophe escapes the next character.
                '\'' => self.at += 1,
                _ => {}
            }
            self.at += 1;
            if depth == 0 {
                break;
            }
        }
        let next = self.peek(0);
        (!next.is_some_and(|c| is_name(c) || matches!(c, '\'' | '!'))).then_some(())
    }

    /// Scans a name: of a cell, a range, a sheet or a function.
    fn name(&mut self) -> Option<()> {
        let begin = self.at;
        while self.peek(0).is_some_and(is_name) {
            self.at += 1;
        }
        let name: String = self.chars[begin..self.at].iter().collect();
        let mut next = self.at;
        while self.chars.get(next).is_some_and(|c| c.is_whitespace()) {
            next += 1;
        }
        match self.chars.get(next) {
            Some('(') => is_harmless(&name).then_some(()),
            // A URL, such as `http://` or `file:///`.
            Some(':') if self.chars.get(next + 1) == Some(&'/') => None,
            _ => Some(()),
        }
    }
}

/// Returns whether a character can be part of a name. All non-ASCII characters count, even invisible ones.
fn is_name(c: char) -> bool {
    c.is_alphanumeric()
        || matches!(c, '_' | '.' | '$' | '?' | '\\')
        || !(c.is_ascii() || c.is_whitespace())
}

fn is_harmless(name: &str) -> bool {
    let name = name.to_ascii_uppercase();
    let mut bare = name.as_str();
    while let Some(rest) = bare
        .strip_prefix("_XLFN.")
        .or_else(|| bare.strip_prefix("_XLWS."))
    {
        bare = rest;
    }
    HARMLESS.contains(bare)
}

static HARMLESS: LazyLock<BTreeSet<&str>> =
    LazyLock::new(|| FUNCTIONS.split_whitespace().collect());

/// Functions that only compute from their arguments. Left out on purpose: functions that fetch, link, call or query something
/// outside (`WEBSERVICE`, `FILTERXML`, `HYPERLINK`, `IMAGE`, `RTD`, `CALL`, `REGISTER.ID`, `DDE`, `STOCKHISTORY`, `CUBE…`,
/// `PY`, `TRANSLATE`, `DETECTLANGUAGE`, `COPILOT`, `IMPORT…`, `GOOGLE…`, `SQL.REQUEST`), functions that reveal something about
/// the machine (`INFO`, `CELL`), and `INDIRECT`, which turns any text into a reference.
const FUNCTIONS: &str = "
    ABS ACCRINT ACCRINTM ACOS ACOSH ACOT ACOTH ADDRESS AGGREGATE AMORDEGRC AMORLINC AND ARABIC AREAS ARRAYTOTEXT ASC ASIN ASINH
    ATAN ATAN2 ATANH AVEDEV AVERAGE AVERAGEA AVERAGEIF AVERAGEIFS BAHTTEXT BASE BESSELI BESSELJ BESSELK BESSELY BETA.DIST
    BETA.INV BETADIST BETAINV BIN2DEC BIN2HEX BIN2OCT BINOM.DIST BINOM.DIST.RANGE BINOM.INV BINOMDIST BITAND BITLSHIFT BITOR
    BITRSHIFT BITXOR BYCOL BYROW CEILING CEILING.MATH CEILING.PRECISE CHAR CHIDIST CHIINV CHISQ.DIST CHISQ.DIST.RT CHISQ.INV
    CHISQ.INV.RT CHISQ.TEST CHITEST CHOOSE CHOOSECOLS CHOOSEROWS CLEAN CODE COLUMN COLUMNS COMBIN COMBINA COMPLEX CONCAT
    CONCATENATE CONFIDENCE CONFIDENCE.NORM CONFIDENCE.T CONVERT CORREL COS COSH COT COTH COUNT COUNTA COUNTBLANK COUNTIF
    COUNTIFS COUPDAYBS COUPDAYS COUPDAYSNC COUPNCD COUPNUM COUPPCD COVAR COVARIANCE.P COVARIANCE.S CRITBINOM CSC CSCH CUMIPMT
    CUMPRINC DATE DATEDIF DATEVALUE DAVERAGE DAY DAYS DAYS360 DB DBCS DCOUNT DCOUNTA DDB DEC2BIN DEC2HEX DEC2OCT DECIMAL
    DEGREES DELTA DEVSQ DGET DISC DMAX DMIN DOLLAR DOLLARDE DOLLARFR DPRODUCT DROP DSTDEV DSTDEVP DSUM DURATION DVAR DVARP
    ECMA.CEILING EDATE EFFECT EOMONTH ERF ERF.PRECISE ERFC ERFC.PRECISE ERROR.TYPE EVEN EXACT EXP EXPAND EXPON.DIST EXPONDIST
    F.DIST F.DIST.RT F.INV F.INV.RT F.TEST FACT FACTDOUBLE FALSE FDIST FILTER FIND FINDB FINV FISHER FISHERINV FIXED FLOOR
    FLOOR.MATH FLOOR.PRECISE FORECAST FORECAST.ETS FORECAST.ETS.CONFINT FORECAST.ETS.SEASONALITY FORECAST.ETS.STAT
    FORECAST.LINEAR FORMULATEXT FREQUENCY FTEST FV FVSCHEDULE GAMMA GAMMA.DIST GAMMA.INV GAMMADIST GAMMAINV GAMMALN
    GAMMALN.PRECISE GAUSS GCD GEOMEAN GESTEP GETPIVOTDATA GROUPBY GROWTH HARMEAN HEX2BIN HEX2DEC HEX2OCT HLOOKUP HOUR HSTACK
    HYPGEOM.DIST HYPGEOMDIST IF IFERROR IFNA IFS IMABS IMAGINARY IMARGUMENT IMCONJUGATE IMCOS IMCOSH IMCOT IMCSC IMCSCH IMDIV
    IMEXP IMLN IMLOG10 IMLOG2 IMPOWER IMPRODUCT IMREAL IMSEC IMSECH IMSIN IMSINH IMSQRT IMSUB IMSUM IMTAN INDEX INT INTERCEPT
    INTRATE IPMT IRR ISBLANK ISERR ISERROR ISEVEN ISFORMULA ISLOGICAL ISNA ISNONTEXT ISNUMBER ISO.CEILING ISODD ISOMITTED
    ISOWEEKNUM ISPMT ISREF ISTEXT JIS KURT LAMBDA LARGE LCM LEFT LEFTB LEN LENB LET LINEST LN LOG LOG10 LOGEST LOGINV
    LOGNORM.DIST LOGNORM.INV LOGNORMDIST LOOKUP LOWER MAKEARRAY MAP MATCH MAX MAXA MAXIFS MDETERM MDURATION MEDIAN MID MIDB
    MIN MINA MINIFS MINUTE MINVERSE MIRR MMULT MOD MODE MODE.MULT MODE.SNGL MONTH MROUND MULTINOMIAL MUNIT N NA NEGBINOM.DIST
    NEGBINOMDIST NETWORKDAYS NETWORKDAYS.INTL NOMINAL NORM.DIST NORM.INV NORM.S.DIST NORM.S.INV NORMDIST NORMINV NORMSDIST
    NORMSINV NOT NOW NPER NPV NUMBERVALUE OCT2BIN OCT2DEC OCT2HEX ODD ODDFPRICE ODDFYIELD ODDLPRICE ODDLYIELD OFFSET OR
    PDURATION PEARSON PERCENTILE PERCENTILE.EXC PERCENTILE.INC PERCENTOF PERCENTRANK PERCENTRANK.EXC PERCENTRANK.INC PERMUT
    PERMUTATIONA PHI PHONETIC PI PIVOTBY PMT POISSON POISSON.DIST POWER PPMT PRICE PRICEDISC PRICEMAT PROB PRODUCT PROPER PV
    QUARTILE QUARTILE.EXC QUARTILE.INC QUOTIENT RADIANS RAND RANDARRAY RANDBETWEEN RANK RANK.AVG RANK.EQ RATE RECEIVED REDUCE
    REGEXEXTRACT REGEXREPLACE REGEXTEST REPLACE REPLACEB REPT RIGHT RIGHTB ROMAN ROUND ROUNDDOWN ROUNDUP ROW ROWS RRI RSQ SCAN
    SEARCH SEARCHB SEC SECH SECOND SEQUENCE SERIESSUM SHEET SHEETS SIGN SIN SINGLE SINH SKEW SKEW.P SLN SLOPE SMALL SORT SORTBY
    SQRT SQRTPI STANDARDIZE STDEV STDEV.P STDEV.S STDEVA STDEVP STDEVPA STEYX SUBSTITUTE SUBTOTAL SUM SUMIF SUMIFS SUMPRODUCT
    SUMSQ SUMX2MY2 SUMX2PY2 SUMXMY2 SWITCH SYD T T.DIST T.DIST.2T T.DIST.RT T.INV T.INV.2T T.TEST TAKE TAN TANH TBILLEQ
    TBILLPRICE TBILLYIELD TDIST TEXT TEXTAFTER TEXTBEFORE TEXTJOIN TEXTSPLIT TIME TIMEVALUE TINV TOCOL TODAY TOROW TRANSPOSE
    TREND TRIM TRIMMEAN TRIMRANGE TRUE TRUNC TTEST TYPE UNICHAR UNICODE UNIQUE UPPER USDOLLAR VALUE VALUETOTEXT VAR VAR.P VAR.S
    VARA VARP VARPA VDB VLOOKUP VSTACK WEEKDAY WEEKNUM WEIBULL WEIBULL.DIST WORKDAY WORKDAY.INTL WRAPCOLS WRAPROWS XIRR
    XLOOKUP XMATCH XNPV XOR YEAR YEARFRAC YIELD YIELDDISC YIELDMAT Z.TEST ZTEST
";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_formula_that_reaches_out_is_known_in_every_spelling() {
        let spellings = [
            "cmd|'/c calc'!A1",
            "cmd|' /C calc'!A0",
            "+cmd|' /C calc'!A0",
            "MSEXCEL|'\\..\\..\\cmd.exe'!''",
            "DDE(\"cmd\",\"/c calc\",\"x\")",
            "dde(\"soffice\";\"file\";\"x\")",
            "WEBSERVICE(\"http://x\")",
            "webservice(\"http://x\")",
            "WEBSERVICE (\"http://x\")",
            "WEBSERVICE\t\n(\"http://x\")",
            "WEBSERVICE\u{a0}(\"http://x\")",
            "WEB\u{200b}SERVICE(\"http://x\")",
            "WEBSERVICE\u{feff}(\"http://x\")",
            "ＷＥＢＳＥＲＶＩＣＥ(\"http://x\")",
            "_xlfn.WEBSERVICE(\"http://x\")",
            "_XLFN._xlws.WEBSERVICE(\"http://x\")",
            "IF(1,_xlfn.WEBSERVICE(A1),0)",
            "FILTERXML(A1,\"//a\")",
            "HYPERLINK(\"http://x\",\"click\")",
            "IMAGE(\"http://x/a.png\")",
            "RTD(\"a.b\",,\"x\")",
            "CALL(\"Kernel32\",\"WinExec\",\"JC\",A1)",
            "REGISTER.ID(\"Kernel32\",\"WinExec\")",
            "EXEC(\"calc\")",
            "SQL.REQUEST(\"dsn\")",
            "STOCKHISTORY(\"MSFT\",A1)",
            "PY(\"import os\",0)",
            "_xlfn._xlws.PY(0,0)",
            "TRANSLATE(A1,\"en\",\"de\")",
            "DETECTLANGUAGE(A1)",
            "COPILOT(\"x\")",
            "GOOGLEFINANCE(\"GOOG\")",
            "GOOGLETRANSLATE(A1)",
            "IMPORTXML(\"http://x\",\"//a\")",
            "IMPORTDATA(\"http://x\")",
            "IMPORTHTML(\"http://x\",\"table\",1)",
            "IMPORTRANGE(\"http://x\",\"A1\")",
            "IMPORTFEED(\"http://x\")",
            "CUBEVALUE(\"x\",\"y\")",
            "INDIRECT(\"[http://x/a.xlsx]S!A1\")",
            "INDIRECT(CHAR(91)&\"x]S!A1\")",
            "INFO(\"directory\")",
            "[1]Sheet1!A1",
            "[1]!Name",
            "SUM('[other.xlsx]S'!A1)",
            "'\\\\host\\share\\[a.xlsx]S'!A1",
            "'http://host/[a.xlsx]S'!A1",
            "[http://host/a.xlsx]S!A1",
            "'file:///etc/passwd'#$Sheet1.A1",
            "_xll.EVIL()",
            "_xludf.EVIL()",
            "Evil.Macro()",
            "\"unclosed",
            "SUM(Sales[Amount",
        ];
        for formula in spellings {
            assert!(reaches_out(formula), "{formula}");
        }
        assert!(spellings.len() >= 27);
    }

    #[test]
    fn ordinary_formulas_are_written_as_they_are() {
        for formula in [
            "1+1",
            "SUM(A1:A3)",
            "SUM (A1:A3)",
            "sum($A$1:$B$9)*-1%",
            "SUM(Sales[Amount])+Other!A1",
            "Sales[[#This Row],[Net]]*[@Rate]",
            "Sales[It''s]",
            "IF(A1=\"a|b [c] WEBSERVICE(\",1,2)",
            "\"say \"\"hi\"\"\"&A1",
            "VLOOKUP(A2,'My sheet'!A:B,2,FALSE)",
            "'It''s'!A1",
            "SUM('Jan:Mar'!A1)",
            "_xlfn.XLOOKUP(A1,B:B,C:C)",
            "_xlfn._xlws.FILTER(A1:B9,B1:B9>1)",
            "_xlfn.STDEV.S(A1:A9)",
            "_xlfn.LET(_xlpm.x,1,_xlpm.x+1)",
            "LOG10(A1)^2",
            "SUMPRODUCT((A1:A9=\"x\")*(B1:B9))",
            "INDEX(A:A,MATCH(1,B:B,0))",
            "{1,2;3,4}",
            "A1#",
            "@A1:A9",
            "A1<>B1",
            "TRUE",
            "Übersicht!A1",
            "IFERROR(A1/B1,\"\")",
            "TEXT(A1,\"yyyy-mm-dd\")",
        ] {
            assert!(!reaches_out(formula), "{formula}");
        }
    }
}

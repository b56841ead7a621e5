"""Runs one step of an analysis: the planner's code over a copy of the workbook.

The first argument is what it is given, read only: step.py, layout.json, current.xlsx, input.xlsx.
The second is where it may write: workbook.xlsx, result.json, pictures.

Nothing here is a wall; the walls are outside of this process. What is here makes the code short and its faults readable.
"""
import datetime, io, json, re, sys, types

STEP = "step.py"
IN, DATA = sys.argv[1], sys.argv[2]

with open(f"{IN}/{STEP}", encoding="utf-8") as file:
    SOURCE = file.read()
with open(f"{IN}/layout.json", encoding="utf-8") as file:
    LAYOUT = json.load(file)


class formula(str):
    """Text that is meant as a formula. Any other text stays text, whatever it begins with."""


def refuse(event, args):
    what = REFUSED.get(event)
    if what:
        raise PermissionError(f"{what} is not allowed in the sandbox")


REFUSED = {
    "os.system": "running a program", "subprocess.Popen": "running a program", "os.exec": "running a program",
    "os.posix_spawn": "running a program", "os.fork": "running a program", "os.forkpty": "running a program",
    "pty.spawn": "running a program", "socket.__new__": "the network", "socket.connect": "the network",
    "socket.bind": "the network", "socket.getaddrinfo": "the network", "socket.gethostbyname": "the network",
    "urllib.Request": "the network", "ftplib.connect": "the network", "smtplib.connect": "the network",
}


def names_of(code):
    """Every name that the code mentions, so that nothing is loaded which it does not use."""
    names = set(code.co_names) | set(code.co_varnames) | set(code.co_freevars)
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            names |= names_of(constant)
    return names


def de_number(value):
    """A number from text as Germans write it: 1.234,56 or 12,00- or 1.234,56 EUR."""
    if value is None or isinstance(value, (int, float)) and not isinstance(value, bool):
        return value
    text = re.sub(r"[\s\u00a0\u202f'€]|EUR", "", str(value))
    if not text:
        return None
    sign = 1
    if text.endswith("-") or text.startswith("-"):
        sign, text = -1, text.strip("-")
    if not re.fullmatch(r"\d{1,3}(\.\d{3})*(,\d+)?|\d+(,\d+)?", text):
        raise ValueError(f"{value!r} is no number in German form")
    text = text.replace(".", "").replace(",", ".")
    return sign * (float(text) if "." in text else int(text))


def de_date(value):
    """A date from text as Germans write it: 31.12.2024."""
    if value is None or isinstance(value, (datetime.date, datetime.datetime)):
        return value
    match = re.fullmatch(r"\s*(\d{1,2})\.(\d{1,2})\.(\d{4})\s*", str(value))
    if not match:
        raise ValueError(f"{value!r} is no date in German form")
    day, month, year = map(int, match.groups())
    return datetime.datetime(year, month, day)


class Books:
    """The workbook as it stands, opened when it is first needed."""

    def __init__(self):
        self.book = None
        self.inputs = None
        self.lines = {}

    def workbook(self):
        if self.book is None:
            self.book = openpyxl().load_workbook(f"{IN}/current.xlsx", rich_text=False)
            watch(self.lines)
        return self.book

    def cached(self, sheet):
        """What the formulas of the input had come to when it was saved."""
        if self.inputs is None:
            self.inputs = (openpyxl().load_workbook(f"{IN}/input.xlsx"), openpyxl().load_workbook(f"{IN}/input.xlsx", data_only=True))
        formulas, values = self.inputs
        if sheet not in formulas.sheetnames:
            return None, None
        return formulas[sheet], values[sheet]


def openpyxl():
    import openpyxl as module
    return module


def cells_of(sheet):
    """The rows of a sheet below its header, and their numbers: figures and dates as such, formulas as what they came to."""
    known = LAYOUT.get(sheet)
    if known is None:
        raise KeyError(f"there is no sheet {sheet!r}; there are {', '.join(map(repr, LAYOUT))}")
    made = BOOKS.workbook()[sheet] if BOOKS.book is not None else None
    if made is None:
        book = openpyxl().load_workbook(f"{IN}/current.xlsx", read_only=True)
        made = book[sheet]
    first, columns = known["first_row"], known["columns"]
    rows, formulas = [], []
    cells = made.iter_rows(min_row=first, min_col=known["first_column"], max_col=known["first_column"] + len(columns) - 1)
    for at, row in enumerate(cells):
        rows.append([cell.value for cell in row])
        formulas += [(at, column) for column, cell in enumerate(row) if cell.data_type == "f"]
    if formulas:
        before, cached = BOOKS.cached(sheet)
        for at, column in formulas:
            place = dict(row=first + at, column=known["first_column"] + column)
            # Of a formula that is as it was it is known what it came to; of any other it is not.
            same = before is not None and before.cell(**place).value == rows[at][column]
            rows[at][column] = cached.cell(**place).value if same else None
    while rows and all(value is None for value in rows[-1]):
        rows.pop()
    convert = {"german_number": de_number, "german_date": de_date}
    for column, kind in enumerate(known["types"]):
        if kind in convert:
            for row in rows:
                row[column] = convert[kind](row[column]) if column < len(row) else None
    return range(first, first + len(rows)), rows


def table(sheet):
    """A sheet as a DataFrame: its header rows as one, trimmed; its index is the row in the sheet."""
    import pandas
    numbers, rows = cells_of(sheet)
    frame = pandas.DataFrame(rows, columns=LAYOUT[sheet]["columns"])
    frame.index = numbers
    frame.index.name = "row"
    return frame


class Rows(list):
    """Rows that a SELECT found, with the names of their columns."""

    columns = []


def select(sql):
    """Runs a SELECT over the sheets, which are tables with the columns of `table` and a column "row"."""
    import sqlite3
    check_names(sql)
    database = sqlite3.connect(":memory:")
    for sheet, known in LAYOUT.items():
        if not known["columns"]:
            continue
        row_name = "sheet row" if "row" in [column.lower() for column in known["columns"]] else "row"
        names = [quoted(name) for name in [row_name] + known["columns"]]
        database.execute(f"CREATE TABLE {quoted(sheet)} ({', '.join(names)})")
        rows = ([row, *map(plain_value, values)] for row, values in zip(*cells_of(sheet)))
        database.executemany(f"INSERT INTO {quoted(sheet)} VALUES ({', '.join('?' * len(names))})", rows)
    cursor = database.execute(sql)
    found = Rows(list(row) for row in cursor)
    found.columns = [column[0] for column in cursor.description or []]
    return found


def check_names(sql):
    """SQLite takes a misspelt name in double quotes for a text, and finds that text in every row."""
    known = {"row", "sheet row", *(name.lower() for name in LAYOUT)}
    for layout in LAYOUT.values():
        known |= {column.lower() for column in layout["columns"]}
    without_texts = re.sub(r"'(?:[^']|'')*'", "''", sql)
    names = re.findall(r'(\bAS\s+)?"((?:[^"]|"")*)"', without_texts, re.IGNORECASE)
    known |= {name.lower() for alias, name in names if alias}
    for _, name in names:
        if name.replace('""', '"').lower() not in known:
            columns = "; ".join(f"{quoted(sheet)}: {', '.join(map(quoted, layout['columns']))}" for sheet, layout in LAYOUT.items())
            raise NameError(f"there is no {quoted(name)} in the workbook, which has {columns}")


def quoted(name):
    return '"' + name.replace('"', '""') + '"'


def plain_value(value):
    """A value as the tables of `select` hold it: dates as text that sorts, whole numbers without a point."""
    if isinstance(value, bool):
        return int(value)
    if isinstance(value, float) and value.is_integer() and abs(value) < 9e15:
        return int(value)
    if isinstance(value, int) and abs(value) >= 2**63:
        # SQLite has no such number.
        return str(value)
    if isinstance(value, (datetime.date, datetime.datetime)):
        return str(value).removesuffix(" 00:00:00")
    return value if value is None or isinstance(value, (int, float, str)) else str(value)


def new_sheet(name, rows):
    """Adds a sheet with a header and these rows, which are a result of `select` or a DataFrame."""
    if hasattr(rows, "itertuples"):
        columns, values = list(rows.columns), [list(row) for row in rows.itertuples(index=False)]
    else:
        columns, values = list(getattr(rows, "columns", [])), [list(row) for row in rows]
    if not values:
        raise ValueError("there are no rows for the new sheet")
    made = BOOKS.workbook().create_sheet(name)
    for row in ([columns] if columns else []) + values:
        made.append(row)
    return made


def line_here():
    frame = sys._getframe(2)
    while frame is not None and frame.f_code.co_filename != STEP:
        frame = frame.f_back
    return frame.f_lineno if frame is not None else 0


def watch(lines):
    """Notes which line wrote which cell, and lets only what is meant as a formula be one."""
    from openpyxl.cell.cell import Cell
    plain = Cell.value

    def write(cell, value):
        if isinstance(value, formula):
            plain.fset(cell, str(value))
        elif isinstance(value, str) and value.startswith("="):
            plain.fset(cell, value)
            cell.data_type = "s"
        else:
            plain.fset(cell, value)
        lines[(cell.parent.title, cell.row, cell.column)] = line_here()

    Cell.value = property(plain.fget, write)


def fault(error):
    """The last thing that went wrong, with the lines of the step that led there."""
    told = []
    if isinstance(error, SyntaxError):
        told.append(f"  line {error.lineno}: {(error.text or '').strip()}")
    trace = error.__traceback__
    source = SOURCE.splitlines()
    while trace is not None:
        if trace.tb_frame.f_code.co_filename == STEP:
            number = trace.tb_lineno
            told.append(f"  line {number}: {source[number - 1].strip() if number <= len(source) else ''}")
        trace = trace.tb_next
    message = str(error) if not isinstance(error, SyntaxError) else error.msg
    return "\n".join([f"{type(error).__name__}: {message}"] + told[-5:])


BOOKS = Books()


def main():
    out = io.StringIO()
    result = {"ok": True, "error": "", "saved": False, "lines": []}
    real = sys.stdout
    sys.stdout = sys.stderr = out
    try:
        code = compile(SOURCE, STEP, "exec")
        given = {"__name__": "__main__", "table": table, "select": select, "new_sheet": new_sheet, "formula": formula, "de_number": de_number, "de_date": de_date,
                 "sheets": list(LAYOUT)}
        names = names_of(code)
        if names & {"workbook", "load_workbook"}:
            given["workbook"] = BOOKS.workbook()
        for name, module in (("pd", "pandas"), ("np", "numpy"), ("openpyxl", "openpyxl")):
            if name in names:
                given[name] = __import__(module)
        if names & {"plt", "matplotlib"}:
            import matplotlib
            matplotlib.use("Agg")
            import matplotlib.pyplot
            given["plt"] = matplotlib.pyplot
        sys.addaudithook(refuse)
        exec(code, given)
        book = given.get("workbook", BOOKS.book)
        if book is not None and BOOKS.book is not None:
            book.save(f"{DATA}/workbook.xlsx")
            result["saved"] = True
    except BaseException as error:
        if isinstance(error, SystemExit) and not error.code:
            result["error"] = "the code called exit(); nothing of it was kept"
        else:
            result["error"] = fault(error)
        result["ok"] = False
    result["out"] = out.getvalue()[:200_000]
    result["lines"] = [[sheet, row, column, line] for (sheet, row, column), line in BOOKS.lines.items()][:2_000_000]
    with open(f"{DATA}/result.json", "w", encoding="utf-8") as file:
        json.dump(result, file)


main()

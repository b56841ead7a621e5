//! Names that do not come from the project: keywords, and the standard libraries of the languages that the scan parses.

use super::super::scan::Language;

/// Returns whether a name is a type, module or function of the standard library of a language.
pub(super) fn is_standard(language: Language, name: &str) -> bool {
    let names = match language {
        Language::Rust => RUST,
        Language::Python => PYTHON,
        Language::TypeScript | Language::JavaScript => SCRIPT,
        Language::Go => GO,
        Language::Java => JAVA,
        _ => return false,
    };
    names.split_ascii_whitespace().any(|known| known == name)
}

/// Returns whether types get a member of this name without defining it: by a derive, a trait or a base class.
pub(super) fn is_inherited(name: &str) -> bool {
    INHERITED
        .split_ascii_whitespace()
        .any(|known| known == name)
        || name.starts_with("__") && name.ends_with("__")
}

const RUST: &str = "Arc Rc Box Vec VecDeque String Option Some None Result Ok Err HashMap HashSet BTreeMap BTreeSet BinaryHeap \
    Mutex RwLock OnceLock LazyLock Condvar Cell RefCell OnceCell Cow Pin Path PathBuf OsStr OsString File OpenOptions Read Write \
    BufReader BufWriter Seek Instant Duration SystemTime Iterator IntoIterator FromIterator Future Stream Clone Copy Debug \
    Display Default Drop Eq PartialEq Ord PartialOrd Hash Hasher Send Sync Sized From Into TryFrom TryInto AsRef AsMut Deref \
    DerefMut Borrow ToOwned ToString FromStr Error Ordering Range NonZeroU32 NonZeroU64 AtomicBool AtomicU32 AtomicU64 \
    AtomicUsize Weak PhantomData Command Child Stdio ExitStatus ExitCode TcpListener TcpStream UdpSocket IpAddr Ipv4Addr \
    Ipv6Addr SocketAddr Thread JoinHandle Sender Receiver std core alloc fmt io fs env net path process sync thread time mem \
    str char bool u8 u16 u32 u64 u128 usize i8 i16 i32 i64 i128 isize f32 f64 println print eprintln eprint format write \
    writeln vec panic assert assert_eq assert_ne todo unimplemented unreachable dbg include_str include_bytes env matches \
    derive cfg test";

const PYTHON: &str = "abs all any bool bytes bytearray callable chr classmethod dict dir enumerate eval exec filter float \
    frozenset getattr hasattr hash id input int isinstance issubclass iter len list map max min next object open ord pow print \
    property range repr reversed round set setattr slice sorted staticmethod str sum super tuple type vars zip Exception \
    ValueError TypeError KeyError IndexError RuntimeError OSError StopIteration NotImplementedError asyncio collections \
    contextlib copy csv dataclasses datetime enum functools glob hashlib heapq http io itertools json logging math os pathlib \
    pickle queue random re shutil signal socket sqlite3 string struct subprocess sys tempfile threading time types typing \
    unittest urllib uuid weakref xml Path Optional Any Union List Dict Callable Iterable Iterator Protocol TypeVar Enum \
    dataclass defaultdict Counter deque OrderedDict namedtuple partial lru_cache Thread Lock Queue";

const SCRIPT: &str = "Array ArrayBuffer BigInt Boolean Date Error Function Infinity Intl JSON Map Math NaN Number Object \
    Promise Proxy Reflect RegExp Set String Symbol TypeError RangeError SyntaxError Uint8Array WeakMap WeakSet console \
    document window process globalThis module exports require Buffer setTimeout setInterval clearTimeout clearInterval fetch \
    parseInt parseFloat isNaN structuredClone queueMicrotask AbortController AbortSignal URL URLSearchParams Headers Request \
    Response FormData Blob File TextEncoder TextDecoder Record Partial Required Readonly Pick Omit Exclude Extract \
    ReturnType Awaited undefined localStorage sessionStorage Event EventTarget HTMLElement Node fs path http https os util \
    events stream crypto child_process";

const GO: &str = "append cap close complex copy delete len make new panic print println real recover bool byte error int \
    int8 int16 int32 int64 rune string uint uint8 uint16 uint32 uint64 float32 float64 any fmt os io bufio bytes strings \
    strconv errors context sync time net http json encoding log slog math rand regexp sort slices maps path filepath flag \
    testing reflect runtime atomic exec signal template sql url tls hash Context WaitGroup Mutex RWMutex Once Reader Writer \
    ReadCloser Duration Time Handler HandlerFunc ResponseWriter Request Response Client Server Buffer Builder Errorf Printf \
    Println Sprintf";

const JAVA: &str = "Object String StringBuilder Integer Long Double Float Boolean Byte Short Character Number Math System \
    Thread Runnable Callable Iterable Iterator Comparable Exception RuntimeException IllegalArgumentException \
    IllegalStateException NullPointerException IOException List ArrayList LinkedList Map HashMap TreeMap LinkedHashMap Set \
    HashSet TreeSet Queue Deque ArrayDeque Collections Collectors Arrays Objects Optional Stream Function Supplier Consumer \
    Predicate BiFunction Path Paths Files File InputStream OutputStream Reader Writer BufferedReader Scanner Instant Duration \
    LocalDate LocalDateTime UUID Random Executor ExecutorService Executors CompletableFuture Future AtomicInteger AtomicLong \
    ConcurrentHashMap Override Deprecated FunctionalInterface Record Enum Class Void";

const INHERITED: &str = "as_mut as_ref borrow clone cmp compareTo constructor default deref deserialize drop eq equals extend \
    fmt from from_iter from_str getClass hash hashCode init into into_iter length name next ordinal parse partial_cmp poll \
    prototype schema serialize source to_owned to_string toJSON toString try_from try_into type_id update valueOf values";

/// Keywords and common commands, which are not names of a project.
pub(super) const KEYWORDS: &[&str] = &[
    "true",
    "false",
    "null",
    "None",
    "nil",
    "self",
    "this",
    "async",
    "await",
    "const",
    "let",
    "mut",
    "var",
    "fn",
    "func",
    "function",
    "def",
    "class",
    "struct",
    "enum",
    "trait",
    "interface",
    "impl",
    "mod",
    "pub",
    "use",
    "import",
    "from",
    "export",
    "return",
    "if",
    "else",
    "for",
    "while",
    "match",
    "switch",
    "try",
    "except",
    "catch",
    "throw",
    "raise",
    "static",
    "void",
    "int",
    "str",
    "string",
    "bool",
    "float",
    "unsafe",
    "extern",
    "dyn",
    "type",
    "package",
    "public",
    "private",
    "protected",
    "new",
    "main",
    "stdin",
    "stdout",
    "stderr",
    "git",
    "cargo",
    "npm",
    "pip",
    "go",
    "mvn",
    "gradle",
    "make",
    "docker",
    "bash",
    "sh",
];

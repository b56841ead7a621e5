use superstep_core::State;

#[derive(Clone, Debug, Default, State)]
struct Review<T> {
    topic: T,
}

#[derive(Clone, Debug, Default, State)]
struct Borrowed<'a> {
    topic: &'a str,
}

fn main() {}

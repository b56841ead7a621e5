use superstep_core::State;

#[derive(Clone, Debug, State)]
enum Stage {
    Draft,
}

#[derive(Clone, Copy, State)]
union Both {
    number: u32,
    float: f32,
}

#[derive(Clone, Debug, Default, State)]
struct Pair(String, String);

#[derive(Clone, Debug, Default, State)]
struct Nothing;

fn main() {}

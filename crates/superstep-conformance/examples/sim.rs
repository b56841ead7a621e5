use superstep_conformance::sim::{explain, simulate};
fn main() {
    let args: Vec<String> = std::env::args().collect();
    let first: u64 = args.get(1).map_or(1, |s| s.parse().unwrap());
    let n: u64 = args.get(2).map_or(100, |s| s.parse().unwrap());
    std::panic::set_hook(Box::new(|_| {}));
    if n == 1_000_000_000 { println!("{}", superstep_conformance::sim::describe(first)); return; }
    if n == 0 {
        let told = explain(first, None);
        for line in told.trace { println!("{line}"); }
        for v in told.violations { println!("{v}"); }
        return;
    }
    let t = std::time::Instant::now();
    let mut bad = 0;
    let mut by: std::collections::BTreeMap<String,(u64,u64,String)> = Default::default();
    for seed in first..first + n {
        let r = simulate(seed);
        if !r.violations.is_empty() { bad += 1; }
        if let Some(v) = r.violations.first() {
            let key: String = format!("{} {}", v.check.name(), v.what.chars().map(|c| if c.is_ascii_hexdigit() && !c.is_alphabetic() {'0'} else {c}).take(60).collect::<String>());
            let e = by.entry(key).or_insert((0, seed, v.what.chars().take(300).collect()));
            e.0 += 1;
        }
    }
    for (k, (c, s, w)) in &by { println!("{c} x seed {s}: {k}\n     {w}"); }
    println!("{bad} bad of {n} in {:?}", t.elapsed());
}

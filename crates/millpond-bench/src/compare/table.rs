//! A comparison to read.

use super::{Comparison, Pair, SMALLEST, Verdict};
use crate::table::columns::{Cells, columns};
use crate::table::time;
use std::fmt;

impl fmt::Display for Comparison {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (better, worse) = (self.with(Verdict::Better), self.with(Verdict::Worse));
        let same = self.pairs.len() - better.len() - worse.len();
        writeln!(f, "compared with the old run")?;
        writeln!(
            f,
            "  {} better, {} worse, {same} the same within noise",
            better.len(),
            worse.len()
        )?;
        for doubt in &self.doubts {
            writeln!(f, "  !  {doubt}")?;
        }
        group(f, "better beyond noise", &better)?;
        group(f, "worse beyond noise", &worse)?;
        names(f, "only in the old run", &self.gone)?;
        names(f, "only in the new run", &self.added)?;
        writeln!(
            f,
            "change: new by old, after what the peers changed by (drift) is taken out\n\
             beyond noise: each median is outside the other's rounds, and they differ by more than \
             this\nfactor, which is how much peers deviate between the two runs, and {:.0} % at least",
            (SMALLEST - 1.0) * 100.0
        )
    }
}

fn group(f: &mut fmt::Formatter<'_>, title: &str, pairs: &[&Pair]) -> fmt::Result {
    if pairs.is_empty() {
        return Ok(());
    }
    writeln!(f, "{title}")?;
    let head = ["", "unit", "old", "new", "drift", "change", "noise", ""];
    let mut cells = vec![head.map(String::from).to_vec()];
    cells.extend(pairs.iter().map(|pair| line(pair)));
    f.write_str(&columns(&cells))
}

fn line(pair: &Pair) -> Cells {
    let mark = if pair.is_ours { '*' } else { ' ' };
    vec![
        format!("{mark} {}", pair.name),
        pair.unit.clone(),
        time(pair.old),
        time(pair.new),
        format!("{:.2}", pair.drift),
        pair.ratio()
            .map_or("-".into(), |ratio| format!("{ratio:.2}")),
        format!("{:.2}", pair.noise),
        String::new(),
    ]
}

fn names(f: &mut fmt::Formatter<'_>, title: &str, names: &[String]) -> fmt::Result {
    if names.is_empty() {
        return Ok(());
    }
    writeln!(f, "{title}")?;
    names.iter().try_for_each(|name| writeln!(f, "    {name}"))
}

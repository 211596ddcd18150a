//! Makes a script that shows a disagreement shorter, for as long as it still shows one.
//!
//! Runs of steps are left out, long runs first, then single steps. Steps that name a task that is no
//! longer submitted go, too. The disagreement may become another one on the way: any will do.

use super::script::{Script, Step};

/// The most attempts. Each is a script that both sides play.
const ATTEMPTS: usize = 400;

/// The shortest script found that `differs`.
pub fn shrink(script: &Script, mut differs: impl FnMut(&Script) -> bool) -> Script {
    let mut best = script.clone();
    let mut attempts = 0;
    let mut run = best.steps.len().div_ceil(2);
    while run > 0 {
        let mut from = 0;
        let mut has_shrunk = false;
        while from < best.steps.len() {
            if attempts == ATTEMPTS {
                return best;
            }
            attempts += 1;
            let shorter = without(&best, from, run);
            if differs(&shorter) {
                best = shorter;
                has_shrunk = true;
            } else {
                from += run;
            }
        }
        // Single steps again and again, because one that was needed may no longer be.
        if !(run == 1 && has_shrunk) {
            run /= 2;
        }
    }
    best
}

/// The script without `run` steps from step `from` on.
fn without(script: &Script, from: usize, run: usize) -> Script {
    let to = (from + run).min(script.steps.len());
    let mut steps = script.steps.clone();
    let mut forgotten = Vec::new();
    for step in steps.drain(from..to) {
        forgotten.extend(step.submits());
    }
    for step in &mut steps {
        if let Step::Release(numbers) = step {
            numbers.retain(|number| !forgotten.contains(number));
        }
    }
    // In order: a node that was made from a forgotten one is forgotten, too.
    steps.retain(|step| {
        let is_empty = matches!(step, Step::Release(numbers) if numbers.is_empty());
        let numbers = step.numbers();
        let keeps = !is_empty && !numbers.iter().any(|number| forgotten.contains(number));
        if !keeps {
            forgotten.extend(step.submits());
        }
        keeps
    });
    Script {
        setup: script.setup.clone(),
        steps,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::differential::generate;

    #[test]
    fn what_is_not_needed_is_left_out_and_what_is_left_makes_sense() {
        let mut tried = 0;
        for seed in 0..200 {
            let long = generate::script(seed);
            let differs = |script: &Script| {
                assert_eq!(script.check(), Ok(()));
                let has = |wanted: fn(&Step) -> bool| script.steps.iter().any(wanted);
                has(|step| matches!(step, Step::Max(_)))
                    && has(|step| matches!(step, Step::Release(_)))
            };
            if !differs(&long) {
                continue;
            }
            tried += 1;
            let short = shrink(&long, differs);
            assert_eq!(short.steps.len(), 3, "submit, release, max:\n{short}");
        }
        assert!(tried > 20, "{tried}");
    }

    #[test]
    fn a_script_of_which_everything_is_needed_stays_and_one_of_which_nothing_is_goes() {
        let script = generate::script(3);
        assert_eq!(shrink(&script, |shorter| shorter == &script), script);
        assert!(shrink(&script, |_| true).steps.is_empty());
    }
}

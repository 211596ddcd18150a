use super::*;
use crate::harness::Absent;

#[test]
fn every_candidate_composes_what_it_should() {
    for workload in (SUITE.workloads)() {
        for candidate in &workload.candidates {
            let name = format!("{}: {}", workload.name, candidate.name);
            match (candidate.run)(100) {
                Ok(sample) => assert!(sample.operations >= 100, "{name}: {sample:?}"),
                Err(error) if error.is::<Absent>() => eprintln!("skipped: {name}: {error}"),
                Err(error) => panic!("{name}: {error:#}"),
            }
        }
    }
}

#[test]
fn every_row_has_one_of_ours_java_and_peers_in_rust() {
    for work in WORKS {
        let workload = workload(work);
        let count =
            |is: &dyn Fn(&&Candidate) -> bool| workload.candidates.iter().filter(is).count();
        let name = &workload.name;
        assert_eq!(count(&|one| one.standing == Standing::Ours), 1, "{name}");
        assert_eq!(count(&|one| one.name.starts_with("Java")), 2, "{name}");
        let is_in_rust =
            |one: &&Candidate| one.standing == Standing::Peer && one.counts_allocations;
        assert!(count(&is_in_rust) > 0, "{name}");
    }
}

#[test]
fn java_has_the_same_sizes() {
    let program = abroad::java(crate::peers::guest::Language::Java);
    for (name, value) in [
        ("WORKERS", crate::peers::pool::WORKERS as u64),
        ("STAGES", chain::STAGES),
        ("GROUP", fan::GROUP),
        ("PARTS", fan::PARTS),
        ("IN_FLIGHT", fan::IN_FLIGHT),
        ("MEMBERS", first::MEMBERS),
        ("BATCH", first::BATCH),
    ] {
        assert_eq!(program.size(name), Some(value.into()), "{name}");
    }
}

/// Adds two somewhere.
struct Wrong;

impl Chain for Wrong {
    const NAME: &'static str = "wrong";

    fn open() -> Result<Self> {
        Ok(Wrong)
    }

    fn done(&self, first: u64) -> Result<u64> {
        Ok(first + chain::STAGES + u64::from(first == 1))
    }

    fn pending(&self, first: u64) -> Result<u64> {
        self.done(first)
    }
}

#[test]
fn a_chain_whose_end_is_wrong_is_found_out() {
    assert!(chain::round::<Wrong>(true, chain::STAGES).is_ok());
    let error = chain::round::<Wrong>(false, 2 * chain::STAGES).unwrap_err();
    assert_eq!(error.to_string(), "the end of a chain from 1 is 1002");
}

/// Runs tasks here, and loses a result or repeats one.
struct Losing<const REPEATS: bool>;

impl<const REPEATS: bool> Fans for Losing<REPEATS> {
    const NAME: &'static str = "losing";

    fn open() -> Result<Self> {
        Ok(Losing)
    }

    fn all(&self, numbers: std::ops::Range<u64>, tally: &'static crate::tally::Tally) -> Vec<u64> {
        let is_whole = numbers.end < 1_000;
        let mut results: Vec<_> = numbers.inspect(|&number| tally.count(number)).collect();
        match results.pop() {
            Some(last) if is_whole => results.push(last),
            Some(_) if REPEATS => results.push(results[0]),
            _ => {}
        }
        results
    }

    fn close(self) {}
}

#[test]
fn results_that_are_lost_or_repeated_are_found_out() {
    let lost = fan::all::<Losing<false>>(1).unwrap_err().to_string();
    assert!(lost.starts_with("9999 results of 10000"), "{lost}");
    let repeated = fan::all::<Losing<true>>(1).unwrap_err().to_string();
    assert!(repeated.starts_with("10000 results of 10000"), "{repeated}");
}

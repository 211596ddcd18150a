use super::*;
use crate::harness::Absent;

#[test]
fn every_candidate_computes_what_it_should() {
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
fn every_row_has_one_of_ours_and_a_peer() {
    for workload in (SUITE.workloads)() {
        let count = |standing| {
            let all = workload.candidates.iter();
            all.filter(|candidate| candidate.standing == standing)
                .count()
        };
        assert_eq!(count(Standing::Ours), 1, "{}", workload.name);
        assert!(count(Standing::Peer) > 0, "{}", workload.name);
    }
}

#[test]
fn a_fibonacci_number_takes_as_many_joins_as_are_said() {
    fn counted(index: u32) -> u64 {
        if index < 2 {
            0
        } else {
            1 + counted(index - 1) + counted(index - 2)
        }
    }
    for wanted in [1, 2, 5, 100] {
        let (index, each) = joins::fib_of(wanted);
        assert_eq!(each, counted(index), "{wanted}");
        assert!(each >= wanted, "{wanted}");
    }
    assert_eq!(joins::fib_of(u64::MAX).0, joins::MOST_FIB);
}

#[test]
fn java_has_the_same_sizes() {
    for (name, value) in [
        ("MOST_FIB", u128::from(joins::MOST_FIB)),
        ("SMALL_TREE", joins::SMALL.into()),
        ("SMALL_PIECE", slices::SMALL as u128),
        ("LEAF", slices::LEAF as u128),
        ("HASHES", joins::HASHES.into()),
    ] {
        assert_eq!(abroad::IN_JAVA.size(name), Some(value), "{name}");
    }
}

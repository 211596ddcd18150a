//! The pools of all suites that compare something else than the cost of a task.
//!
//! The suite `pool` compares all pools. The others ask their questions of one of each kind: what many
//! write themselves, what most use, and what is most like ours.

use crate::harness::Standing;
use crate::peers::pool::hand_rolled::{Crossbeam, HandRolled};
use crate::peers::pool::millpond::Millpond;
use crate::peers::pool::rayon::Rayon;
use crate::peers::pool::threadpool::Threadpool;
use crate::peers::pool::{Pool, tokio};

/// The workload of every pool of the field.
pub trait Visitor {
    /// Its result.
    type Found;

    /// Asks one.
    fn visit<P: Pool + 'static>(&self, standing: Standing) -> Self::Found;
}

/// Asks all, ours first.
pub fn visit<V: Visitor>(visitor: &V) -> Vec<V::Found> {
    vec![
        visitor.visit::<Millpond>(Standing::Ours),
        visitor.visit::<HandRolled<Crossbeam>>(Standing::Peer),
        visitor.visit::<Rayon>(Standing::Peer),
        visitor.visit::<tokio::Spawn>(Standing::Peer),
        visitor.visit::<tokio::SpawnBlocking>(Standing::Peer),
        visitor.visit::<Threadpool>(Standing::Peer),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    struct Names;

    impl Visitor for Names {
        type Found = (&'static str, Standing);

        fn visit<P: Pool + 'static>(&self, standing: Standing) -> Self::Found {
            (P::NAME, standing)
        }
    }

    #[test]
    fn the_field_has_one_of_ours_and_peers_by_different_names() {
        let field = visit(&Names);
        let names: BTreeSet<_> = field.iter().map(|(name, _)| name).collect();
        assert_eq!(names.len(), field.len());
        let ours = field
            .iter()
            .filter(|(_, standing)| *standing == Standing::Ours);
        assert_eq!(ours.count(), 1);
    }
}

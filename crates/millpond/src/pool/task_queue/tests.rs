//! The queue by priority: its order, and the bound on how long a task is overtaken.

use super::*;
use crate::task::{Priority, TaskSpec};
use crate::time::ManualClock;
use proptest::collection::vec;
use proptest::prelude::*;

const MS: Duration = Duration::from_millis(1);

struct Case {
    hand: ManualClock,
    queue: TaskQueue,
}

impl Case {
    fn new(capacity: usize, per_level: Duration) -> Self {
        let hand = ManualClock::new();
        let queue = Queue::by_priority(capacity, per_level);
        let queue = queue.build(&hand.clock()).unwrap();
        Case { hand, queue }
    }

    fn offer(&self, name: usize, priority: Priority) -> bool {
        let spec = TaskSpec::new().name(name.to_string()).priority(priority);
        let task = spec.build_detached(|| ());
        self.queue.offer(task).is_ok()
    }

    fn poll(&self) -> Option<usize> {
        let task = self.queue.poll()?;
        task.name().map(|name| name.parse().unwrap())
    }
}

#[test]
fn a_sealed_line_by_priority_takes_nothing_in_and_gives_out_what_it_has() {
    let case = Case::new(3, MS);
    assert!(case.offer(1, Priority::Low) && case.offer(2, Priority::High));
    case.queue.seal();
    assert!(case.queue.is_sealed() && !case.offer(3, Priority::High));
    // Room that comes free later is no room, either.
    assert_eq!((case.poll(), case.poll()), (Some(2), Some(1)));
    assert!(!case.offer(4, Priority::High) && case.queue.is_empty());
}

#[test]
fn a_line_by_priority_needs_a_place_and_keeps_its_bound() {
    let clock = ManualClock::new().clock();
    let none = Queue::by_priority(0, MS).build(&clock).err();
    assert_eq!(none, Some(CapacityError::Zero));
    let case = Case::new(1, MS);
    assert!(case.offer(1, Priority::Low) && !case.offer(2, Priority::High));
    assert_eq!(case.queue.objects_to(0), Some(CapacityError::Zero));
    assert_eq!(case.queue.objects_to(7), None);
}

/// However many urgent tasks come: from its time on, a low one is not overtaken.
#[test]
fn a_low_task_is_delayed_by_its_levels_and_not_a_moment_longer() {
    let case = Case::new(100, 50 * MS);
    assert!(case.offer(0, Priority::Low));
    let mut taken = Vec::new();
    for number in 1..=200 {
        assert!(case.offer(number, Priority::High));
        taken.extend(case.poll());
        case.hand.advance(MS);
    }
    // The hundredth urgent one after it comes after 100 ms, and that is too late to overtake.
    let place = taken.iter().position(|number| *number == 0);
    assert_eq!(place, Some(100));
}

#[derive(Clone, Copy, Debug)]
enum Step {
    Come(Priority),
    Take,
    Pass(u32),
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        5 => prop::sample::select(&Priority::ALL[..]).prop_map(Step::Come),
        3 => Just(Step::Take),
        2 => (0..8_u32).prop_map(Step::Pass),
    ]
}

/// A task that waits, as the property knows it.
struct Waiting {
    number: usize,
    priority: Priority,
    /// From when on no task may overtake it.
    ripe: u32,
    /// How many were taken before it since then.
    passed: usize,
}

proptest! {
    #![proptest_config(crate::proptest_kit::config(256))]

    /// The bound, for every pattern of arrivals: once a task is ripe, which is after as many steps as
    /// its level, fewer are taken before it than there are places. And the order is what it should be.
    #[test]
    fn no_task_is_passed_more_often_than_there_are_places(
        capacity in 1..10_usize,
        per_level in 0..10_u32,
        steps in vec(step(), 1..200),
    ) {
        let case = Case::new(capacity, per_level * MS);
        let (mut waiting, mut now): (Vec<Waiting>, u32) = (Vec::new(), 0);
        for (number, step) in steps.into_iter().enumerate() {
            match step {
                Step::Come(priority) => {
                    let is_in = case.offer(number, priority);
                    prop_assert_eq!(is_in, waiting.len() < capacity);
                    if is_in {
                        let ripe = now + priority.level() * per_level;
                        waiting.push(Waiting { number, priority, ripe, passed: 0 });
                    }
                }
                Step::Pass(ms) => {
                    now += ms;
                    case.hand.advance(ms * MS);
                }
                Step::Take => {
                    let Some(taken) = case.poll() else {
                        prop_assert!(waiting.is_empty());
                        continue;
                    };
                    let place = waiting.iter().position(|one| one.number == taken);
                    let taken = waiting.remove(place.unwrap());
                    for one in &mut waiting {
                        one.passed += usize::from(one.ripe <= now);
                        prop_assert!(one.passed < capacity, "{} starves", one.number);
                        // As urgent and older, or ripe before: it would have been its turn.
                        let key = |one: &Waiting| (one.ripe, one.number);
                        prop_assert!(key(one) > key(&taken));
                        let first = one.priority == taken.priority && one.number < taken.number;
                        prop_assert!(!first, "first in, first out within a level");
                    }
                }
            }
        }
    }
}

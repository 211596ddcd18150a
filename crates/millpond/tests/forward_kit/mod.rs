//! Queues of a test that only pass calls on to another queue.

/// The methods of a `BlockingQueue<Task>` that has another one in its field 0.
macro_rules! forward_to_inner {
    () => {
        fn offer(&self, task: Task) -> Result<(), OfferError<Task>> {
            self.0.offer(task)
        }

        fn poll(&self) -> Option<Task> {
            self.0.poll()
        }

        fn poll_offer(
            &self,
            task: &mut Option<Task>,
            slot: &mut WaitSlot,
            waker: &Waker,
        ) -> Offered {
            self.0.poll_offer(task, slot, waker)
        }

        fn poll_take(&self, slot: &mut WaitSlot, waker: &Waker) -> Taken<Task> {
            self.0.poll_take(slot, waker)
        }

        fn leave_offer(&self, task: &mut Option<Task>, slot: &mut WaitSlot) {
            self.0.leave_offer(task, slot);
        }

        fn leave_take(&self, slot: &mut WaitSlot) -> Option<Task> {
            self.0.leave_take(slot)
        }

        fn len(&self) -> usize {
            self.0.len()
        }

        fn capacity(&self) -> Option<usize> {
            self.0.capacity()
        }

        fn set_capacity(&self, capacity: usize) -> Result<(), CapacityError> {
            self.0.set_capacity(capacity)
        }

        fn visit(&self, see: &mut dyn FnMut(&Task) -> ControlFlow<()>) {
            self.0.visit(see);
        }

        fn remove_where(&self, limit: usize, unwanted: &mut dyn FnMut(&Task) -> bool) -> Vec<Task> {
            self.0.remove_where(limit, unwanted)
        }

        fn clock(&self) -> &Clock {
            self.0.clock()
        }
    };
}

pub(crate) use forward_to_inner;

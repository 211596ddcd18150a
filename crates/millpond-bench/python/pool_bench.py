"""Python's concurrent.futures, doing the workloads of the bench's suite "pool".

It does the same as crates/millpond-bench/src/workloads/pool, step by step; what is explained there is
not explained again. Orders and answers are lines: see crates/millpond-bench/src/peers/guest/mod.rs.

Nothing needs to warm up here but the pool itself, so the last word of an order is not used. The pool has
no queue with a bound, and no way to run a task without a future for its result.
"""

import os
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor

WORKERS = 2
BOUND = 1024  # There is no bound to set here; it is what the others have.
MOST_PRODUCERS = 4
POOL_WARM_UP = 1_000
BATCH = 1_000
BURST = 10_000
PAUSED_TRIP = "trip-pause-"
SETTLE_SECONDS = 0.002
LONGEST_SLEEP_SECONDS = 0.02
PATIENCE_SECONDS = 5.0


class Failed(Exception):
    """What an order is answered with that could not be done."""


class Seat:
    """Where a thread counts: alone, so that nothing is lost."""

    def __init__(self):
        self.tasks = 0
        self.sum = 0


LOCAL = threading.local()


def count(number):
    """The small task: it counts itself, and returns its number."""
    seat = LOCAL.seat
    seat.sum += number
    seat.tasks += 1
    return number


class Opened:
    """A pool that is open, warm and idle."""

    def __init__(self):
        self.seats = []
        self.pool = ThreadPoolExecutor(max_workers=WORKERS, initializer=self._sit_down)
        self.tasks_before = self.sum_before = 0
        everybody = threading.Barrier(WORKERS + 1)
        for _ in range(WORKERS):
            self.pool.submit(everybody.wait)
        everybody.wait()
        for number in range(1, POOL_WARM_UP + 1):
            self.pool.submit(count, number)
        self.wait_for(POOL_WARM_UP)
        time.sleep(SETTLE_SECONDS)
        self.tasks_before, self.sum_before = self.tasks(), self.sum()

    def _sit_down(self):
        LOCAL.seat = Seat()
        self.seats.append(LOCAL.seat)

    def tasks(self):
        return sum(seat.tasks for seat in self.seats)

    def sum(self):
        return sum(seat.sum for seat in self.seats)

    def wait_for(self, tasks):
        """Waits until so many tasks have run since it was opened, or until none has for long."""
        start = latest_at = time.perf_counter()
        first = latest = self.tasks()
        while True:
            done = self.tasks()
            missing = self.tasks_before + tasks - done
            if missing <= 0:
                return
            now = time.perf_counter()
            if done > latest:
                latest, latest_at = done, now
            elif now - latest_at > PATIENCE_SECONDS:
                return
            left = (now - start) / (done - first) * missing if done > first else 0
            time.sleep(min(left / 2, LONGEST_SLEEP_SECONDS))

    def close(self, tasks):
        """Closes it, and checks that the tasks from 1 to `tasks` have run, once each."""
        self.pool.shutdown()
        ran = self.tasks() - self.tasks_before
        if ran != tasks:
            raise Failed(f"{tasks} tasks were submitted and {ran} ran")
        if self.sum() - self.sum_before != tasks * (tasks + 1) // 2:
            raise Failed(f"{tasks} tasks ran, but they are not the ones that were submitted")


def usage(threads=None):
    """CPU time, sleeps and preemptions of these threads, or of all; None where they are not known."""
    cpu = sleeps = preemptions = 0
    try:
        for thread in os.listdir("/proc/self/task") if threads is None else threads:
            folder = f"/proc/self/task/{thread}"
            with open(f"{folder}/schedstat") as file:
                cpu += int(file.read().split()[0])
            with open(f"{folder}/status") as file:
                for line in file:
                    name, _, value = line.partition(":")
                    if name == "voluntary_ctxt_switches":
                        sleeps += int(value)
                    elif name == "nonvoluntary_ctxt_switches":
                        preemptions += int(value)
    except (OSError, IndexError, ValueError):
        return None
    return cpu, sleeps, preemptions


class Answer:
    """What an order is answered with."""

    def __init__(self, operations, nanos, tasks, times=None, burnt=0):
        self.operations = operations
        self.nanos = nanos
        self.tasks = tasks
        self.times = times
        self.burnt = burnt
        self.used = None

    def use(self, before, after):
        """What was burnt on purpose is no price of the pool."""
        if before is not None and after is not None:
            cpu, sleeps, preemptions = (later - sooner for sooner, later in zip(before, after))
            self.used = max(0, cpu - self.burnt), max(0, sleeps), max(0, preemptions)

    def __str__(self):
        text = f"done operations={self.operations} nanos={self.nanos}"
        if self.used is not None:
            text += " cpu={} sleeps={} preemptions={}".format(*self.used)
        if self.times:
            times = sorted(self.times)
            # The smallest that is no less than so many thousandths of all.
            for name, thousandths in ("p50", 500), ("p99", 990), ("p999", 999), ("max", 1_000):
                rank = (len(times) * thousandths + 999) // 1_000
                text += f" {name}={times[rank - 1]}"
        return text


def fire(opened, producers, tasks):
    share = max(1, -(-tasks // producers))
    everybody = share * producers
    together = threading.Barrier(producers)
    began, ended = [0] * producers, [0] * producers

    def produce(index):
        together.wait()
        began[index] = time.perf_counter_ns()
        submit = opened.pool.submit
        for number in range(index * share + 1, (index + 1) * share + 1):
            submit(count, number)
        if index == 0:
            opened.wait_for(everybody)
        ended[index] = time.perf_counter_ns()

    crew = [threading.Thread(target=produce, args=(index,)) for index in range(1, producers)]
    for thread in crew:
        thread.start()
    produce(0)
    for thread in crew:
        thread.join()
    return Answer(everybody, max(ended) - min(began), everybody)


def join_all(opened, tasks):
    batches = max(1, -(-tasks // BATCH))
    submit, total = opened.pool.submit, 0
    start = time.perf_counter_ns()
    for batch in range(batches):
        numbers = range(batch * BATCH + 1, (batch + 1) * BATCH + 1)
        handles = [submit(count, number) for number in numbers]
        total += sum(handle.result() for handle in handles)
    nanos = time.perf_counter_ns() - start
    everybody = batches * BATCH
    if total != everybody * (everybody + 1) // 2:
        raise Failed("the tasks did not return what they were given")
    return Answer(everybody, nanos, everybody)


def trips(opened, trips, pause=0):
    submit, times, wrong, burnt = opened.pool.submit, [], 0, 0
    for number in range(1, trips + 1):
        if pause:
            burnt += work_for(pause)
        start = time.perf_counter_ns()
        result = submit(count, number).result()
        times.append(time.perf_counter_ns() - start)
        wrong += result != number
    if wrong:
        raise Failed(f"{wrong} of {trips} results are wrong")
    return Answer(trips, sum(times), trips, times, burnt)


def work_for(nanos):
    start = time.perf_counter_ns()
    while True:
        elapsed = time.perf_counter_ns() - start
        if elapsed >= nanos:
            return elapsed


def bursts(opened, bursts):
    submit, nanos = opened.pool.submit, 0
    for burst in range(bursts):
        time.sleep(SETTLE_SECONDS)
        start = time.perf_counter_ns()
        for number in range(burst * BURST + 1, (burst + 1) * BURST + 1):
            submit(count, number)
        opened.wait_for((burst + 1) * BURST)
        nanos += time.perf_counter_ns() - start
    return Answer(bursts, nanos, bursts * BURST)


def idle(opened, millis):
    # Those of the pool: the thread that reads the figures is not one of them.
    here = str(threading.get_native_id())
    others = [thread for thread in os.listdir("/proc/self/task") if thread != here]
    before = usage(others)
    start = time.perf_counter_ns()
    time.sleep(millis / 1_000)
    answer = Answer(millis, time.perf_counter_ns() - start, 0)
    answer.use(before, usage(others))
    return answer


WORKS = {
    "fire": fire,
    "join-all": lambda opened, _, tasks: join_all(opened, tasks),
    "trip": lambda opened, _, number: trips(opened, number),
    "burst": lambda opened, _, number: bursts(opened, number),
    "idle": lambda opened, _, millis: idle(opened, millis),
}


def work_of(name):
    """What to do; the length of pauses is in the name, in microseconds."""
    if name.startswith(PAUSED_TRIP):
        pause = int(name[len(PAUSED_TRIP) :]) * 1_000
        return lambda opened, _, number: trips(opened, number, pause)
    if name not in WORKS:
        raise Failed(f"there is no work {name}")
    return WORKS[name]


def run(order):
    words = order.split()
    if len(words) != 6 or words[0] != "run":
        raise Failed(f"not an order: {order.strip()}")
    name, executor, producers, operations = words[1], words[2], int(words[3]), int(words[4])
    if not 1 <= producers <= MOST_PRODUCERS:
        raise Failed(f"there are 1 to {MOST_PRODUCERS} producers")
    work = work_of(name)
    if executor != "threads":
        raise Failed(f"there is no executor {executor}")
    opened = Opened()
    before = usage()
    answer = work(opened, producers, operations)
    if answer.used is None:
        time.sleep(SETTLE_SECONDS)
        answer.use(before, usage())
    opened.close(answer.tasks)
    return str(answer)


def main():
    print("ready", sys.implementation.name, sys.version.split()[0], flush=True)
    for order in sys.stdin:
        try:
            print(run(order), flush=True)
        except Exception as error:  # Whatever it is, who ordered wants to know.
            print("failed", " ".join(str(error).split()) or type(error).__name__, flush=True)


main()

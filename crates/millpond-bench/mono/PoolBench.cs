// Mono's ThreadPool and Task, doing the workloads of the bench's suite "pool". It does the same as
// crates/millpond-bench/src/workloads/pool, step by step; what is explained there is not explained again.
// Orders and answers are lines: see crates/millpond-bench/src/peers/guest/mod.rs.
//
// There is one pool in a process, and it has no bound. Its number of threads can be set, but not below the
// number of CPUs: the greeting says how many it has.

using System;
using System.Collections.Generic;
using System.Diagnostics;
using System.IO;
using System.Reflection;
using System.Threading;
using System.Threading.Tasks;

/// Where a thread counts: on a line of its own, in the middle of an array so that nothing else shares it.
sealed class Seat
{
    const int TasksAt = 16, SumAt = 17;
    readonly long[] line = new long[48];

    [ThreadStatic]
    static Seat mine;

    static readonly List<Seat> all = new List<Seat>();

    public static void Count(long number)
    {
        long[] line = (mine ?? SitDown()).line;
        line[SumAt] += number;
        Volatile.Write(ref line[TasksAt], line[TasksAt] + 1);
    }

    static Seat SitDown()
    {
        mine = new Seat();
        lock (all) all.Add(mine);
        return mine;
    }

    public static long Tasks()
    {
        long tasks = 0;
        lock (all) foreach (Seat seat in all) tasks += Volatile.Read(ref seat.line[TasksAt]);
        return tasks;
    }

    public static long Sum()
    {
        long sum = 0;
        lock (all) foreach (Seat seat in all) sum += seat.line[SumAt];
        return sum;
    }
}

/// What all threads used: CPU time in nanoseconds, sleeps, preemptions.
struct Usage
{
    public long Cpu, Sleeps, Preemptions;
    public bool Known;

    /// All threads, or all but the running one.
    public static Usage Read(bool withoutThis = false)
    {
        Thread.Yield();
        Usage usage = new Usage { Known = true };
        string mine = withoutThis ? ThisThread() : null;
        try
        {
            foreach (string folder in Directory.GetDirectories("/proc/self/task"))
            {
                if (mine != null && Path.GetFileName(folder) == mine) continue;
                usage.Cpu += long.Parse(File.ReadAllText(folder + "/schedstat").Split(' ')[0]);
                foreach (string line in File.ReadAllLines(folder + "/status"))
                {
                    if (line.StartsWith("voluntary_ctxt_switches:")) usage.Sleeps += Number(line);
                    if (line.StartsWith("nonvoluntary_ctxt_switches:")) usage.Preemptions += Number(line);
                }
            }
        }
        catch (Exception)
        {
            usage.Known = false;
        }
        return usage;
    }

    /// The thread whose name was set last: /proc/thread-self is a link, which this runtime cannot read.
    static string ThisThread()
    {
        foreach (string folder in Directory.GetDirectories("/proc/self/task"))
        {
            if (File.ReadAllText(folder + "/comm").Trim() == Program.Caller) return Path.GetFileName(folder);
        }
        return null;
    }

    static long Number(string line)
    {
        return long.Parse(line.Substring(line.IndexOf(':') + 1).Trim());
    }

    /// What was burnt on purpose is no price of the pool.
    public string Since(Usage before, long burnt = 0)
    {
        if (!Known || !before.Known) return "";
        return " cpu=" + Math.Max(0, Cpu - before.Cpu - burnt) + " sleeps=" + Math.Max(0, Sleeps - before.Sleeps)
            + " preemptions=" + Math.Max(0, Preemptions - before.Preemptions);
    }
}

sealed class Failed : Exception
{
    public Failed(string why) : base(why) { }
}

static class Program
{
    const int Workers = 2;
    const int Bound = 1024; // There is no bound to set here; it is what the others have.
    const int MostProducers = 4;
    const int Batch = 1000;
    const int Burst = 10000;
    const int PoolWarmUp = 1000;
    const int SettleMillis = 2;
    const double PatienceSeconds = 5;
    const string PausedTrip = "trip-pause-";
    public const string Caller = "bench-caller";

    static readonly double NanosPerTick = 1e9 / Stopwatch.Frequency;
    static readonly WaitCallback Tiny = number => Seat.Count((long)number);

    static long tasksBefore, sumBefore;

    static long Now()
    {
        return (long)(Stopwatch.GetTimestamp() * NanosPerTick);
    }

    static void Run(long number)
    {
        ThreadPool.UnsafeQueueUserWorkItem(Tiny, number);
    }

    static Task<long> Submit(long number)
    {
        return Task.Run(() =>
        {
            Seat.Count(number);
            return number;
        });
    }

    /// The pool is there all the time: it is warmed up, and falls asleep.
    static void Open()
    {
        tasksBefore = Seat.Tasks();
        for (long number = 1; number <= PoolWarmUp; number++) Run(number);
        WaitFor(PoolWarmUp);
        Thread.Sleep(SettleMillis);
        tasksBefore = Seat.Tasks();
        sumBefore = Seat.Sum();
    }

    /// Waits until so many tasks have run since it was opened, or until none has for long.
    static void WaitFor(long tasks)
    {
        long start = Now(), latestAt = start;
        long first = Seat.Tasks(), latest = first;
        while (true)
        {
            long done = Seat.Tasks();
            long missing = tasksBefore + tasks - done;
            if (missing <= 0) return;
            long now = Now();
            if (done > latest)
            {
                latest = done;
                latestAt = now;
            }
            else if (now - latestAt > PatienceSeconds * 1e9) return;
            double left = done > first ? (double)(now - start) / (done - first) * missing : 0;
            if (left > 2e6) Thread.Sleep((int)Math.Min(left / 2e6, 20));
            else Thread.Yield();
        }
    }

    /// Checks that the tasks from 1 to `tasks` have run, once each.
    static void Check(long tasks)
    {
        long ran = Seat.Tasks() - tasksBefore;
        if (ran != tasks) throw new Failed(tasks + " tasks were submitted and " + ran + " ran");
        if (Seat.Sum() - sumBefore != tasks * (tasks + 1) / 2)
        {
            throw new Failed(tasks + " tasks ran, but they are not the ones that were submitted");
        }
    }

    static string Done(long operations, long nanos)
    {
        return "done operations=" + operations + " nanos=" + nanos;
    }

    static string Fire(int producers, long tasks)
    {
        long share = Math.Max(1, (tasks + producers - 1) / producers);
        long all = share * producers;
        long[] began = new long[producers], ended = new long[producers];
        int missing = producers;
        List<Thread> threads = new List<Thread>();
        for (int producer = 0; producer < producers; producer++)
        {
            int index = producer;
            Thread thread = new Thread(() =>
            {
                Interlocked.Decrement(ref missing);
                while (Volatile.Read(ref missing) > 0) Thread.Yield();
                began[index] = Now();
                for (long number = index * share + 1; number <= (index + 1) * share; number++) Run(number);
                if (index == 0) WaitFor(all);
                ended[index] = Now();
            });
            threads.Add(thread);
        }
        Usage before = Usage.Read();
        foreach (Thread thread in threads) thread.Start();
        foreach (Thread thread in threads) thread.Join();
        Array.Sort(began);
        Array.Sort(ended);
        Thread.Sleep(SettleMillis);
        string used = Usage.Read().Since(before);
        Check(all);
        return Done(all, ended[producers - 1] - began[0]) + used;
    }

    /// A task brings all the others, or every task brings two, numbered as in a heap.
    static string FromInside(WaitCallback first, long tasks)
    {
        Usage before = Usage.Read();
        long start = Now();
        ThreadPool.UnsafeQueueUserWorkItem(first, 1L);
        WaitFor(tasks);
        long nanos = Now() - start;
        Thread.Sleep(SettleMillis);
        string used = Usage.Read().Since(before);
        Check(tasks);
        return Done(tasks, nanos) + used;
    }

    static WaitCallback Loop(long tasks)
    {
        return _ =>
        {
            for (long number = 2; number <= tasks; number++) Run(number);
            Seat.Count(1);
        };
    }

    static WaitCallback Tree(long last)
    {
        WaitCallback node = null;
        node = number =>
        {
            long own = (long)number;
            for (long child = 2 * own; child <= Math.Min(2 * own + 1, last); child++)
            {
                ThreadPool.UnsafeQueueUserWorkItem(node, child);
            }
            Seat.Count(own);
        };
        return node;
    }

    static string JoinAll(long tasks)
    {
        long batches = Math.Max(1, (tasks + Batch - 1) / Batch), sum = 0;
        Task<long>[] handles = new Task<long>[Batch];
        Usage before = Usage.Read();
        long start = Now();
        for (long batch = 0; batch < batches; batch++)
        {
            for (int index = 0; index < Batch; index++) handles[index] = Submit(batch * Batch + index + 1);
            foreach (Task<long> handle in handles) sum += handle.Result;
        }
        long nanos = Now() - start, all = batches * Batch;
        Thread.Sleep(SettleMillis);
        string used = Usage.Read().Since(before);
        if (sum != all * (all + 1) / 2) throw new Failed("the tasks did not return what they were given");
        Check(all);
        return Done(all, nanos) + used;
    }

    static string Trips(long pauseNanos, long trips)
    {
        long[] times = new long[trips];
        long wrong = 0, paused = 0, nanos = 0;
        Usage before = Usage.Read();
        for (long trip = 0; trip < trips; trip++)
        {
            if (pauseNanos > 0) paused += WorkFor(pauseNanos);
            long start = Now();
            long result = Submit(trip + 1).Result;
            times[trip] = Now() - start;
            nanos += times[trip];
            wrong += result == trip + 1 ? 0 : 1;
        }
        Thread.Sleep(SettleMillis);
        string used = Usage.Read().Since(before, paused);
        if (wrong > 0) throw new Failed(wrong + " of " + trips + " results are wrong");
        Check(trips);
        Array.Sort(times);
        return Done(trips, nanos) + used + " p50=" + Share(times, 500) + " p99=" + Share(times, 990)
            + " p999=" + Share(times, 999) + " max=" + Share(times, 1000);
    }

    /// The smallest that is no less than so many thousandths of all.
    static long Share(long[] times, long thousandths)
    {
        long rank = (times.Length * thousandths + 999) / 1000;
        return times[Math.Max(rank, 1) - 1];
    }

    static long WorkFor(long nanos)
    {
        long start = Now();
        while (true)
        {
            long elapsed = Now() - start;
            if (elapsed >= nanos) return elapsed;
        }
    }

    static string Bursts(long bursts)
    {
        long nanos = 0;
        Usage before = Usage.Read();
        for (long burst = 0; burst < bursts; burst++)
        {
            Thread.Sleep(SettleMillis);
            long start = Now();
            for (long number = burst * Burst + 1; number <= (burst + 1) * Burst; number++) Run(number);
            WaitFor((burst + 1) * Burst);
            nanos += Now() - start;
        }
        Thread.Sleep(SettleMillis);
        string used = Usage.Read().Since(before);
        Check(bursts * Burst);
        return Done(bursts, nanos) + used;
    }

    /// The thread that reads the figures is not counted.
    static string Idle(long millis)
    {
        Usage before = Usage.Read(withoutThis: true);
        long start = Now();
        Thread.Sleep((int)millis);
        long nanos = Now() - start;
        return Done(millis, nanos) + Usage.Read(withoutThis: true).Since(before);
    }

    static readonly HashSet<string> works = new HashSet<string>
    {
        "fire", "inside", "tree", "join-all", "trip", "burst", "idle",
    };

    static string Do(string work, string executor, int producers, long operations)
    {
        if (!works.Contains(work) && !work.StartsWith(PausedTrip)) throw new Failed("there is no work " + work);
        if (executor != "threadpool") throw new Failed("there is no executor " + executor);
        Open();
        if (work.StartsWith(PausedTrip))
        {
            return Trips(long.Parse(work.Substring(PausedTrip.Length)) * 1000, operations);
        }
        switch (work)
        {
            case "fire": return Fire(producers, operations);
            case "inside": return FromInside(Loop(operations), operations);
            case "tree": return FromInside(Tree(operations), operations);
            case "join-all": return JoinAll(operations);
            case "trip": return Trips(0, operations);
            case "burst": return Bursts(operations);
            default: return Idle(operations);
        }
    }

    static readonly HashSet<string> warm = new HashSet<string>();

    /// It compiles a method once, when it is first called, and takes a while to grow its heap.
    static void WarmUp(string work, string executor, int producers, long millis)
    {
        string warmed = work.StartsWith(PausedTrip) ? PausedTrip + "10" : work;
        if (millis <= 0 || work == "idle" || !warm.Add(warmed + " " + producers)) return;
        long portion = work.StartsWith("trip") ? 500 : work == "burst" ? 1 : 10000;
        long end = Now() + millis * 1000000;
        do Do(warmed, executor, producers, portion);
        while (Now() < end);
    }

    static string Answer(string order)
    {
        try
        {
            string[] words = order.Split(new[] { ' ' }, StringSplitOptions.RemoveEmptyEntries);
            if (words.Length != 6 || words[0] != "run") throw new Failed("not an order: " + order);
            int producers = int.Parse(words[3]);
            if (producers < 1 || producers > MostProducers)
            {
                throw new Failed("there are 1 to " + MostProducers + " producers");
            }
            WarmUp(words[1], words[2], producers, long.Parse(words[5]));
            return Do(words[1], words[2], producers, long.Parse(words[4]));
        }
        catch (Exception error)
        {
            return "failed " + string.Join(" ", error.Message.Split((char[])null, StringSplitOptions.RemoveEmptyEntries));
        }
    }

    static string Version()
    {
        Type runtime = Type.GetType("Mono.Runtime");
        MethodInfo name = runtime?.GetMethod("GetDisplayName", BindingFlags.NonPublic | BindingFlags.Static);
        return name == null ? ".NET " + Environment.Version : "Mono " + name.Invoke(null, null);
    }

    static void Main()
    {
        int threads = Math.Max(Workers, Environment.ProcessorCount);
        ThreadPool.SetMinThreads(threads, threads);
        ThreadPool.SetMaxThreads(threads, threads);
        int most, ports;
        ThreadPool.GetMaxThreads(out most, out ports);
        Thread caller = new Thread(() =>
        {
            for (string order = Console.ReadLine(); order != null; order = Console.ReadLine())
            {
                Console.WriteLine(Answer(order));
                Console.Out.Flush();
            }
            // Whoever ordered is gone, and nobody wants to know the rest.
            Environment.Exit(0);
        });
        caller.Name = Caller;
        Console.WriteLine("ready " + Version() + ", a pool of " + most + " threads");
        Console.Out.Flush();
        caller.Start();
        caller.Join();
    }
}

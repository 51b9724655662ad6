// The small kernels of the micro-benchmarks. Every spin ends when it is over budget, and what it measured is then not
// believable but the GPU is free. A record is four words a block: started, went on (past a wait), ended, SM.
#include "sync.cuh"

#define MICRO extern "C" __global__ void
#define RECORD_WORDS 4
#define COPY_THREADS 512
enum { TRIGGER = 1, WAIT_BEFORE = 2 };

// True while the value has not come and the budget lasts.
struct Patience {
    u64 end;
    DEV explicit Patience(u64 ns) : end(now_ns() + ns) {}
    DEV bool lasts() const { return now_ns() < end; }
};

MICRO cusim_micro_empty() {}

// Each block counts itself as started, then stays for `ns` (0: leaves at once).
MICRO cusim_micro_hold(u64* records, u64 ns, u32* started, u32 flags) {
    if (flags & TRIGGER) pdl_trigger();
    if (thread_index() != 0) return;
    u64* mine = records + (u64)block_index() * RECORD_WORDS;
    const u64 from = now_ns();
    add_release(started, 1);
    if (flags & WAIT_BEFORE) pdl_wait();
    const u64 on = now_ns();
    while (now_ns() - on < ns) {}
    store_u64(mine, from);
    store_u64(mine + 1, on);
    store_u64(mine + 3, sm_index());
    store_u64(mine + 2, now_ns());
}

// Returns once the word has reached the value.
MICRO cusim_micro_wait(u32* word, u32 value, u64 budget) {
    const Patience patience(budget);
    while (!reached(load_acquire(word), value) && patience.lasts()) sleep_ns(50);
}

// One reading of the timer by each block, as soon as all have come.
MICRO cusim_micro_spread(u32* arrived, u64* readings, u64 budget) {
    const Patience patience(budget);
    add_release(arrived, 1);
    while (load_acquire(arrived) < (u32)block_count() && patience.lasts()) {}
    store_u64(readings + block_index(), now_ns());
}

DEV void post(u32* word, u32 value, u32 by_store) {
    if (by_store) store_release(word, value);
    else add_release(word, 1);
}

// Two blocks answer one another: out[i] is the time of `rounds` rounds, then the SMs of both. Words 256 bytes apart.
MICRO cusim_micro_answer(u32* words, u64* out, u32 batches, u32 rounds, u32 by_store, u32 sleep, u32 partner, u64 budget) {
    if (block_index() != 0 && block_index() != (int)partner) return;
    const bool first = block_index() == 0;
    const Patience patience(budget);
    u32 *mine = words + (first ? 0 : 64), *other = words + (first ? 64 : 0), turn = 0;
    for (u32 batch = 0; batch < batches; batch++) {
        const u64 from = now_ns();
        for (u32 round = 0; round < rounds; round++) {
            turn++;
            if (first) post(mine, turn, by_store);
            u32 tries = 0;
            while (load_acquire(other) < turn) {
                if (sleep) sleep_ns(sleep);
                if ((++tries & 1023) == 0 && !patience.lasts()) return;
            }
            if (!first) post(mine, turn, by_store);
        }
        if (first) store_u64(out + batch, now_ns() - from);
    }
    store_u64(out + batches + (first ? 0 : 1), sm_index());
}

// Every block posts `count` times to one word; the last is an atomic that comes back, so that all have been done.
MICRO cusim_micro_posts(u32* arrived, u32* word, u64* records, u32 count, u64 budget) {
    const Patience patience(budget);
    add_release(arrived, 1);
    while (load_acquire(arrived) < (u32)block_count() && patience.lasts()) {}
    const u64 from = now_ns();
    for (u32 i = 1; i < count; i++) add_release(word, 1);
    const u32 last = add_acq_rel(word, 1);
    u64* mine = records + (u64)block_index() * RECORD_WORDS;
    store_u64(mine, from);
    store_u64(mine + 2, now_ns() + (last == 0xffffffffu)); // has the atomic's answer before the timer is read
}

// out: nanoseconds of `count` operations, a batch after another: 0 acquire that is satisfied, 1 proxy fence, 2 acquire
// and fence, 3 nothing (cycles of a stretch of time, for the clock of the SM).
MICRO cusim_micro_costs(u32* word, u64* out, u32 batches, u32 count, u32 what) {
    for (u32 batch = 0; batch < batches; batch++) {
        const u64 from = now_ns();
        const long long cycles = clock64();
        u32 sum = 0;
        for (u32 i = 0; i < count && what < 3; i++) {
            if (what != 1) sum += load_acquire(word + (sum & 1));
            if (what != 0) proxy_fence();
        }
        while (what == 3 && now_ns() - from < 100000) {}
        const long long passed = clock64() - cycles;
        const u64 took = now_ns() - from;
        store_u64(out + batch * 2, took + (sum == 1));
        store_u64(out + batch * 2 + 1, (u64)passed);
    }
}

// One SM's timer and clock side by side, `count` times, a step apart.
MICRO cusim_micro_clocks(u64* out, u32 count, u64 step_ns, u64 budget) {
    const Patience patience(budget);
    u64 next = now_ns();
    for (u32 i = 0; i < count && patience.lasts(); i++, next += step_ns) {
        while (now_ns() < next) {}
        const u64 at = now_ns();
        store_u64(out + 2 * i + 1, (u64)clock64());
        store_u64(out + 2 * i, at);
    }
}

// Copies `count` pieces of 16 bytes, `passes` times over, past L1. Blocks of COPY_THREADS.
MICRO cusim_micro_copy(const uint4* from, uint4* to, u64 count, u32 passes) {
    const u64 step = (u64)block_count() * COPY_THREADS;
    for (u32 pass = 0; pass < passes; pass++) {
        u64 i = (u64)block_index() * COPY_THREADS + thread_index();
        for (; i + 3 * step < count; i += 4 * step) {
            const uint4 a = __ldcg(from + i), b = __ldcg(from + i + step);
            const uint4 c = __ldcg(from + i + 2 * step), d = __ldcg(from + i + 3 * step);
            __stcg(to + i, a);
            __stcg(to + i + step, b);
            __stcg(to + i + 2 * step, c);
            __stcg(to + i + 3 * step, d);
        }
        for (; i < count; i += step) __stcg(to + i, __ldcg(from + i));
    }
}

// Keeps LIVE values in registers across a barrier: kernels that differ in their registers only. Asked about, never run.
template <int LIVE> DEV void keep(float* data) {
    float held[LIVE];
#pragma unroll
    for (int i = 0; i < LIVE; i++) held[i] = ((volatile float*)data)[i * 1024 + thread_index()];
    block_barrier();
#pragma unroll
    for (int i = 0; i < LIVE; i++) ((volatile float*)data)[i * 1024 + thread_index()] = held[i];
}
#define KEEP(CAP) MICRO __maxnreg__(CAP) cusim_micro_keep_##CAP(float* data) { keep<CAP - 8>(data); }
KEEP(24) KEEP(32) KEEP(40) KEEP(64) KEEP(72) KEEP(96) KEEP(128) KEEP(168) KEEP(200) KEEP(255)

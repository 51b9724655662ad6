// Semaphores between kernels: waiting with a budget, posting, counting runs.
//
// A post is: stores of the tile, a proxy fence by each storing thread (readers use bulk copies), a barrier, then one
// thread's release. A wait is: acquire loads by a warp, a lane a k step; one proxy fence for all that it found; then
// a release in shared memory to the thread that loads. The loading thread itself never polls global memory.
#pragma once
#include "ptx.cuh"

// Sets the abort flag; the first to do so says why.
DEV void give_up(const CusimParams& p, u32 kind, u32 slot, u32 index, u32 value, u32 target) {
    CusimFault* f = p.fault;
    if (swap_if(&f->abort, 0, 1) != 0) return;
    store_relaxed(&f->kind, kind);
    store_relaxed(&f->kernel, p.kernel_id);
    store_relaxed(&f->block, (u32)block_index());
    store_relaxed(&f->slot, slot);
    store_relaxed(&f->index, index);
    store_relaxed(&f->value, value);
    store_relaxed(&f->target, target);
}

// How long a spin has lasted. The timer and the flag are looked at only now and then: the common wait is short.
struct Watch {
    u64 began = 0;
    u32 turns = 0;
    // True every 64 turns; *late* when the budget is over, *stop* when any block has given up.
    DEV bool look(const CusimParams& p, u64 budget_ns, bool& late, bool& stop) {
        if (turns == 0) began = now_ns();
        if ((++turns & 63) != 0) return false;
        stop = load_relaxed(&p.fault->abort) != 0;
        late = now_ns() - began > budget_ns;
        return true;
    }
};

// True once a counter has reached the value, in the arithmetic of counters that wrap.
DEV bool reached(u32 value, u32 target) { return (int)(value - target) >= 0; }

// What run e is past: counters that grow by `total` a run start it at (e - 1) * total.
DEV u32 base_of(u32 epoch, int total) { return (epoch - 1) * (u32)total; }

// The ticket of this block, and later ones for a persistent block (turn > 0). Past the last: any number >= tickets.
template <class Glue, bool PERSISTENT> DEV int take_ticket(const CusimParams& p, u32 epoch, int turn) {
    int ticket;
    if (p.flags & CUSIM_TICKETED) {
        // A persistent block takes one ticket more than it works on: the one that tells it to stop.
        const int grows = Glue::tickets + (PERSISTENT ? block_count() : 0);
        ticket = (int)(add_relaxed(p.tickets, 1) - base_of(epoch, grows));
    } else {
        ticket = block_index() + turn * block_count();
    }
    if ((p.flags & CUSIM_REVERSE) && ticket < Glue::tickets) ticket = Glue::tickets - 1 - ticket;
    return ticket;
}

// One tile's work: coordinates, and the part of the k loop that is its slice's.
struct Work {
    int ticket, r, c, z, first, steps;
};
template <class Glue> DEV Work work_of(int ticket) {
    Work w;
    w.ticket = ticket;
    w.r = w.c = w.z = w.first = w.steps = 0;
    if (ticket >= Glue::tickets) {
        w.ticket = -1;
        return w;
    }
    Glue::tile(ticket, &w.r, &w.c, &w.z);
    w.first = w.z * Glue::slice_steps;
    const int last = w.first + Glue::slice_steps;
    w.steps = (last < Glue::steps ? last : Glue::steps) - w.first;
    if (w.steps < 0) w.steps = 0; // more slices than steps
    return w;
}

// Which semaphore a lane is held back by, for the fault record.
struct Held {
    int slot, index;
    u32 value, target;
};

// True when all `count` semaphores of a wait have been posted.
template <class Glue, class Wait> DEV bool wait_met(const CusimParams& p, u32 epoch, const Wait& w, Held& held) {
    for (int j = 0; j < w.count; j++) {
        const int total = Glue::total(w.slot, w.index + j);
        const u32 target = base_of(epoch, total) + (u32)w.target;
        const u32 value = load_acquire(p.sem_in[w.slot] + w.index + j);
        if (!reached(value, target)) {
            held = Held{w.slot, w.index + j, value, target};
            return false;
        }
    }
    return true;
}

// True when step `step` of the slice may read operand A. Waits placed past the slice's last step are made at it.
template <class Glue> DEV bool step_open(const CusimParams& p, u32 epoch, const Work& w, int step, Held& held) {
    bool open = true;
    if constexpr (Glue::step_waits > 0) {
        for (int i = 0; i < Glue::step_waits && open; i++)
            open = wait_met<Glue>(p, epoch, Glue::step_wait(i, w.r, w.c, w.z, w.first + step), held);
    }
    if constexpr (Glue::fixed_waits > 0) {
        for (int i = 0; i < Glue::fixed_waits && open; i++) {
            const auto wait = Glue::fixed_wait(i, w.r, w.c, w.z);
            int at = wait.at_k - w.first;
            if (at >= w.steps) at = w.steps - 1;
            if (at < 0) at = 0;
            if (at == step) open = wait_met<Glue>(p, epoch, wait, held);
        }
    }
    return open;
}

// A warp's look-out over 32 k steps at a time; all lanes call. The steps below ready() may be read by this warp.
template <class Glue> struct Gate {
    static constexpr bool waits = Glue::step_waits + Glue::fixed_waits > 0;
    int window = 0; // first of the 32 steps looked at
    int steps_open = 0;
    bool open = false; // this lane's step
    Watch watch;

    DEV void start() {
        window = 0;
        steps_open = 0;
        open = false;
        watch = Watch();
    }
    // Looks once; true when more steps have opened.
    DEV bool look(const CusimParams& p, u32 epoch, const Work& w, int lane) {
        if (!waits || (p.flags & CUSIM_NO_WAIT)) {
            steps_open = w.steps;
            return true;
        }
        Held held = {};
        if (!open) open = window + lane >= w.steps || step_open<Glue>(p, epoch, w, window + lane, held);
        const u32 closed = ~warp_ballot(open);
        const int found = closed == 0 ? 32 : lowest_bit(closed);
        const int now = window + found < w.steps ? window + found : w.steps;
        if (now > steps_open) {
            steps_open = now;
            if (found == 32) {
                window += 32;
                open = false;
            }
            watch = Watch();
            return true;
        }
        bool late = false, stop = false;
        if (lane == found && watch.look(p, p.spin_budget_ns, late, stop) && late && !stop) {
            give_up(p, CUSIM_FAULT_SEMAPHORE, held.slot, held.index, held.value, held.target);
            stop = true;
        }
        if (warp_ballot(stop) != 0) { // the rest runs on unguarded: the run has failed, and has to end
            steps_open = w.steps;
            return true;
        }
        sleep_ns(20);
        return false;
    }
};

// Check runs: holds a tile back before it is stored, so that a reader who does not wait meets what was there before.
// Seeded, so that a failure can be repeated.
template <class Glue> DEV void hold_back(const CusimParams& p, const Work& w) {
    if (Glue::posts == 0 || p.delay_max_ns == 0) return;
    u64 x = p.delay_seed + 0x9e3779b97f4a7c15ull * (u64)(w.ticket + 1 + ((int)p.kernel_id << 20));
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ull;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebull;
    const u64 delay = (x >> 33) % p.delay_max_ns, from = now_ns();
    while (now_ns() - from < delay) sleep_ns(200);
}

// Posts a finished tile; one thread, ordered after a barrier that every storing thread has passed.
template <class Glue> DEV void post_tile(const CusimParams& p, u32 epoch, const Work& w) {
    if constexpr (Glue::posts > 0) {
        for (int i = 0; i < Glue::posts; i++) {
            const auto post = Glue::post(i, w.r, w.c);
            u32* semaphore = p.sem_out[post.slot] + post.index;
            if (p.flags & CUSIM_STORE_POST) store_release(semaphore, epoch * (u32)post.add);
            else add_release(semaphore, (u32)post.add);
        }
    }
}

// ---- time stamps, where asked for
DEV void stamp(const CusimParams& p, int ticket, int word, u64 value) {
    if (p.stamps) store_u64(p.stamps + (u64)ticket * CUSIM_STAMP_WORDS + word, value);
}
DEV void stamp_now(const CusimParams& p, int ticket, int word) {
    if (p.stamps) stamp(p, ticket, word, now_ns()); // the timer is slow to read
}
DEV void stamp_start(const CusimParams& p, int ticket, u64 placed) {
    stamp(p, ticket, CUSIM_STAMP_PLACED, placed);
    stamp_now(p, ticket, CUSIM_STAMP_READY);
    stamp(p, ticket, CUSIM_STAMP_WHERE, (u64)sm_index() | (u64)block_index() << 32);
}

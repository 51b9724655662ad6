// How the warps of a wgmma block meet: the ring of stages, and the tiles' coordinates handed from one warp to the rest.
#pragma once
#include "sync.cuh"

// Barriers and words behind the stages.
template <class Shape> struct Room {
    u32 stages, full, empty, told, heard, stored, work, gate, last;
    DEV explicit Room(u32 start) {
        stages = (start + 1023) & ~1023u; // the swizzle counts from 1024-byte boundaries
        full = stages + Shape::STAGES * Shape::STAGE_BYTES;
        empty = full + Shape::STAGES * 8;
        told = empty + Shape::STAGES * 8; // two tiles' coordinates: written
        heard = told + 16;                // and read by everybody
        stored = heard + 16;              // all stores of a tile are done
        work = stored + 16;               // two Work, 32 bytes each, at 16-byte boundaries
        gate = work + 64;                 // k steps opened so far, over all tiles of this block
        last = gate + 4;                  // two words: this slice finishes the tile
    }
};

// Position in a ring of barriers: which one, and the parity of its current round.
template <int SIZE> struct Turn {
    int at = 0;
    u32 parity = 0;
    DEV void next() {
        if (++at == SIZE) {
            at = 0;
            parity ^= 1;
        }
    }
};

// Waits for a barrier's phase. All barriers of a block move as long as the gate opens, and the gate opens when a run
// is given up; the budget here only guards against faults of the kernel itself.
DEV void barrier_wait(const CusimParams& p, u32 bar, u32 parity) {
    if (barrier_try(bar, parity)) return;
    Watch watch;
    while (!barrier_try(bar, parity)) {
        bool late = false, stop = false;
        if (watch.look(p, 4 * p.spin_budget_ns, late, stop) && late) {
            give_up(p, CUSIM_FAULT_PIPELINE, 0, bar, parity, 0);
            return;
        }
    }
}

DEV void write_work(u32 at, const Work& w) {
    const u32 one[4] = {(u32)w.ticket, (u32)w.r, (u32)w.c, (u32)w.z}, two[4] = {(u32)w.first, (u32)w.steps, 0, 0};
    shared_store_16(at, one);
    shared_store_16(at + 16, two);
}
DEV Work read_work(u32 at) {
    u32 one[4], two[4];
    shared_load_16(at, one);
    shared_load_16(at + 16, two);
    return Work{(int)one[0], (int)one[1], (int)one[2], (int)one[3], (int)two[0], (int)two[1]};
}

// The tile of turn `i`; the first is there when the block starts.
template <class Shape> DEV Work next_work(const CusimParams& p, const Room<Shape>& room, int i) {
    if (i > 0) barrier_wait(p, room.told + (i & 1) * 8, ((i - 1) >> 1) & 1);
    return read_work(room.work + (i & 1) * 32);
}
// Lets the look-out write over the tile of turn `i`.
template <class Shape> DEV void let_go(const Room<Shape>& room, int i) {
    if constexpr (Shape::PERSISTENT) barrier_arrive(room.heard + (i & 1) * 8);
}

// C = A B for sm_90a: bulk tensor copies into a ring of stages, wgmma out of it. Warps have fixed parts:
//   warp 0 (one thread)  loads: waits for an empty stage and for the gate, then starts the copies
//   warp 1               looks out: takes tickets, polls the semaphores of A ahead of the loads, opens the gate
//   warp 2 (one thread)  posts: once all stores of a tile are done, so that consumers go on with the next tile
//   warpgroups 1...      consumers: products, split-K, epilogue, stores
#pragma once
#include "pipeline.cuh"
#include "split_k.cuh"
#include "sync.cuh"
#include "tile_math.cuh"

// GROUPS consumer warpgroups, each with BM / GROUPS rows (a multiple of 64) of the tile.
template <int BM_, int BN_, int STAGES_, int GROUPS_, bool BF16_, int EPILOGUE_, int PROLOGUE_, bool PERSISTENT_>
struct WgmmaShape {
    static constexpr int BM = BM_, BN = BN_, BK = 64, STAGES = STAGES_, GROUPS = GROUPS_;
    static constexpr bool BF16 = BF16_, PERSISTENT = PERSISTENT_;
    static constexpr int EPILOGUE = EPILOGUE_, PROLOGUE = PROLOGUE_;
    static constexpr int ROWS = BM / GROUPS / 64; // 64-row products a warpgroup makes side by side
    static constexpr int CONSUMERS = 128 * GROUPS, THREADS = CONSUMERS + 128;
    static constexpr int LINE = BK * 2, CHUNK = 64 * LINE; // 128-byte rows; 64 of them: one 64 x 64 block
    static constexpr int A_BYTES = BM * LINE, B_BYTES = BN / 64 * CHUNK;
    static constexpr int HALVES = PROLOGUE == CUSIM_SWIGLU ? 2 : 1;
    static constexpr int STAGE_BYTES = HALVES * A_BYTES + B_BYTES;
    static constexpr int SHARED_BYTES = 1024 + STAGES * STAGE_BYTES + 512;
    // Small tiles wait for memory more than for the tensor cores: two blocks an SM where shared memory allows it.
    static constexpr int BLOCKS = GROUPS == 1 && BN <= 128 && !PERSISTENT && SHARED_BYTES <= 114688 ? 2 : 1;
    // Registers move from the loading warps to the consumers; with one consumer group there are enough for all.
    static constexpr bool MOVES = GROUPS > 1;
    static constexpr int FEW = GROUPS == 3 ? 40 : 56, MANY = GROUPS == 3 ? 152 : 224;
    static_assert(BM == GROUPS * ROWS * 64 && BN % 64 == 0 && BM <= 256 && BN <= 256, "tile");
    static_assert(SHARED_BYTES <= 232448, "shared memory of a block");
};

// ------------------------------------------------------------------------------------------------ warp 1: look-out
template <class Shape, class Glue>
DEV void look_out(const CusimParams& p, const Room<Shape>& room, u32 epoch, Work w, int lane) {
    Gate<Glue> gate;
    int opened = 0; // steps of all tiles before
    for (int i = 0;; i++) {
        if (i > 0) {
            const int slot = i & 1;
            if (lane == 0) {
                if (i > 1) barrier_wait(p, room.heard + slot * 8, ((i - 2) >> 1) & 1);
                w = work_of<Glue>(take_ticket<Glue, Shape::PERSISTENT>(p, epoch, i));
                write_work(room.work + slot * 32, w);
                barrier_arrive(room.told + slot * 8);
                if (p.stamps && w.ticket >= 0) stamp_start(p, w.ticket, now_ns());
            }
            warp_barrier();
            w = read_work(room.work + slot * 32);
        }
        if (w.ticket < 0) return;
        gate.start();
        while (gate.steps_open < w.steps) {
            if (!gate.look(p, epoch, w, lane)) continue;
            warp_barrier(); // orders the other lanes' acquires before lane 0's fence
            if (lane == 0) {
                if constexpr (Gate<Glue>::waits) proxy_fence();
                shared_store_release(room.gate, (u32)(opened + gate.steps_open));
            }
        }
        opened += w.steps;
        if constexpr (!Shape::PERSISTENT) return;
    }
}

// --------------------------------------------------------------------------------------------------- warp 0: loads
template <class Shape> struct Loader {
    const CusimParams& p;
    const Room<Shape>& room;
    const CusimTensorMap *a, *a_second, *b;
    Turn<Shape::STAGES> turn;        // of the next A
    Turn<Shape::STAGES> ahead;       // of the next B, which may run ahead of A
    u32 opened = 0;                  // what the gate said last

    DEV u32 stage(int at) const { return room.stages + at * Shape::STAGE_BYTES; }
    DEV void load_b(const Work& w, int step) {
        const u32 to = stage(ahead.at) + Shape::HALVES * Shape::A_BYTES, bar = room.full + ahead.at * 8;
        barrier_expect(bar, Shape::STAGE_BYTES);
#pragma unroll
        for (int j = 0; j < Shape::BN / 64; j++)
            tensor_load(to + j * Shape::CHUNK, b, bar, w.c * Shape::BN + j * 64, (w.first + step) * Shape::BK);
        ahead.next();
    }
    DEV void load_a(const Work& w, int step) {
        const u32 to = stage(turn.at), bar = room.full + turn.at * 8;
        tensor_load(to, a, bar, (w.first + step) * Shape::BK, w.r * Shape::BM);
        if constexpr (Shape::HALVES == 2)
            tensor_load(to + Shape::A_BYTES, a_second, bar, (w.first + step) * Shape::BK, w.r * Shape::BM);
        turn.next();
    }
    // Waits until the gate has opened step `wanted` (counted over all tiles); with R, loads B meanwhile.
    DEV u64 wait_gate(const Work& w, u32 wanted, int& b_step) {
        const u64 from = p.stamps ? now_ns() : 0;
        for (;;) {
            opened = shared_load_acquire(room.gate);
            if ((int)(opened - wanted) > 0) break;
            if ((p.flags & CUSIM_REORDER) && b_step < w.steps && barrier_test(room.empty + ahead.at * 8, ahead.parity ^ 1))
                load_b(w, b_step++);
        }
        return p.stamps ? now_ns() - from : 0;
    }
    DEV void tile(const Work& w, u32 before) {
        u64 waited = 0;
        int b_step = 0;
        for (int step = 0; step < w.steps; step++) {
            if (!(p.flags & CUSIM_REORDER) && (int)(opened - before) <= step) waited += wait_gate(w, before + step, b_step);
            if (b_step == step) {
                barrier_wait(p, room.empty + ahead.at * 8, ahead.parity ^ 1);
                load_b(w, b_step++);
            }
            if ((int)(opened - before) <= step) waited += wait_gate(w, before + step, b_step);
            if (step == 0) stamp_now(p, w.ticket, CUSIM_STAMP_FIRST_LOAD);
            load_a(w, step);
        }
        stamp(p, w.ticket, CUSIM_STAMP_WAITED, waited);
    }
};

template <class Shape, class Glue> DEV void load_tiles(Loader<Shape>& loader) {
    u32 before = 0;
    for (int i = 0;; i++) {
        const Work w = next_work<Shape>(loader.p, loader.room, i);
        let_go(loader.room, i);
        if (w.ticket < 0) return;
        loader.tile(w, before);
        before += (u32)w.steps;
        if constexpr (!Shape::PERSISTENT) return;
    }
}

// --------------------------------------------------------------------------------------------------- warp 2: posts
template <class Shape, class Glue> DEV void post_tiles(const CusimParams& p, const Room<Shape>& room, u32 epoch) {
    for (int i = 0;; i++) {
        const Work w = next_work<Shape>(p, room, i);
        if (w.ticket < 0) return;
        barrier_wait(p, room.stored, i & 1);
        stamp_now(p, w.ticket, CUSIM_STAMP_END);
        if (Glue::slices == 1 || shared_load(room.last + (i & 1) * 4) != 0) post_tile<Glue>(p, epoch, w);
        stamp_now(p, w.ticket, CUSIM_STAMP_POSTED);
        let_go(room, i); // only now: else consumers could finish two more tiles, and `stored` would come full circle
        if constexpr (!Shape::PERSISTENT) return;
    }
}

// ------------------------------------------------------------------------------------------------------- consumers
// Descriptor of a block in shared memory with the 128-byte swizzle; distances in bytes.
DEV u64 wgmma_operand(u32 address, u32 leading, u32 stride) {
    return (u64)((address & 0x3ffff) >> 4) | (u64)(leading >> 4) << 16 | (u64)(stride >> 4) << 32 | (u64)1 << 62;
}

template <class Shape> struct Consumer {
    static constexpr int SUMS = Shape::BN / 2; // accumulators of a thread in one 64-row product
    const CusimParams& p;
    const Room<Shape>& room;
    int group, thread; // warpgroup, and thread within it
    Turn<Shape::STAGES> turn;
    float sums[Shape::ROWS][SUMS];

    // SwiGLU where it lies: the second half is folded into the first, 16 bytes at a time. Both have one layout, so
    // the swizzle does not matter. It overlaps the products of the step before, which are asynchronous.
    DEV void join_halves(u32 stage) {
        constexpr int BYTES = Shape::ROWS * 64 * Shape::LINE;
        const u32 gate = stage + group * BYTES + thread * 16;
#pragma unroll
        for (int at = 0; at < BYTES; at += 128 * 16) {
            u32 left[4], right[4];
            shared_load_16(gate + at, left);
            shared_load_16(gate + at + Shape::A_BYTES, right);
            swiglu_8<Shape::BF16>(left, right);
            shared_store_16(gate + at, left);
        }
        proxy_fence_shared(); // each writer: wgmma reads through the asynchronous proxy
        part_barrier<128>(2 + group);
    }
    DEV void products(u32 stage) {
        const u32 b_at = stage + Shape::HALVES * Shape::A_BYTES;
        const u64 b = wgmma_operand(b_at, Shape::CHUNK, 8 * Shape::LINE);
        wgmma_fence();
#pragma unroll
        for (int kk = 0; kk < Shape::BK / 16; kk++)
#pragma unroll
            for (int row = 0; row < Shape::ROWS; row++) {
                const u32 a_at = stage + (group * Shape::ROWS + row) * Shape::CHUNK;
                const u64 a = wgmma_operand(a_at, 16, 8 * Shape::LINE);
                Wgmma<Shape::BN, Shape::BF16>::run(sums[row], a + kk * 2, b + kk * 128, 1); // 32 bytes; 16 lines
            }
        wgmma_commit();
    }
    DEV void multiply(int steps) {
#pragma unroll
        for (int row = 0; row < Shape::ROWS; row++) {
#pragma unroll
            for (int i = 0; i < SUMS; i++) sums[row][i] = 0.f;
            wgmma_hold(sums[row]);
        }
        int before = 0;
        for (int step = 0; step < steps; step++) {
            barrier_wait(p, room.full + turn.at * 8, turn.parity);
            const u32 stage = room.stages + turn.at * Shape::STAGE_BYTES;
            if constexpr (Shape::PROLOGUE == CUSIM_SWIGLU) join_halves(stage);
            products(stage);
            wgmma_wait<1>();
            if (step > 0 && (thread & 31) == 0) barrier_arrive(room.empty + before * 8);
            before = turn.at;
            turn.next();
        }
        wgmma_wait<0>();
        if (steps > 0 && (thread & 31) == 0) barrier_arrive(room.empty + before * 8);
#pragma unroll
        for (int row = 0; row < Shape::ROWS; row++) wgmma_hold(sums[row]);
    }
    DEV void store(const Work& w) {
        const int lane = thread & 31, warp = thread >> 5;
#pragma unroll
        for (int row = 0; row < Shape::ROWS; row++) {
            const int line = w.r * Shape::BM + (group * Shape::ROWS + row) * 64 + warp * 16;
            store_strip<Shape::BN / 8, Shape::BF16, Shape::EPILOGUE>(
                p, line, w.c * Shape::BN, lane, [&](int column, int e) { return sums[row][column * 4 + e]; });
        }
    }
};

template <class Shape, class Glue>
DEV void consume_tiles(const CusimParams& p, const Room<Shape>& room, u32 epoch, int thread) {
    Consumer<Shape> me = {p, room, thread >> 7, thread & 127, {}, {}};
    for (int i = 0;; i++) {
        const Work given = next_work<Shape>(p, room, i);
        if (given.ticket < 0) return;
        me.multiply(given.steps);
        const Work w = read_work(room.work + (i & 1) * 32); // again: registers are short while the products run
        bool whole = true;
        if constexpr (Glue::slices > 1) {
            constexpr int SUMS = Consumer<Shape>::SUMS;
            whole = join_slices<Glue, Shape::CONSUMERS, 1, Shape::ROWS * SUMS>(
                p, epoch, w, thread, room.last + (i & 1) * 4,
                [&](int at) -> float& { return me.sums[at / SUMS][at % SUMS]; });
        }
        hold_back<Glue>(p, w);
        if (whole) me.store(read_work(room.work + (i & 1) * 32));
        if constexpr (Glue::posts > 0) proxy_fence(); // each writer: the next kernel reads by bulk copies
        barrier_arrive(room.stored);
        let_go(room, i);
        if constexpr (!Shape::PERSISTENT) return;
    }
}

// ------------------------------------------------------------------------------------------------------- the block
template <class Shape, class Glue>
DEV void gemm_wgmma(const CusimParams& p, const CusimTensorMap* a, const CusimTensorMap* b, const CusimTensorMap* a_second) {
    CUSIM_SHARED(memory);
    const Room<Shape> room(shared_address(memory));
    const int thread = thread_index(), warp = thread >> 5, lane = thread & 31;
    const u64 placed = p.stamps ? now_ns() : 0;
    const u32 epoch = load_relaxed(p.epoch);
    Work w = {};
    if (warp == 1) { // while warp 0 sets up the barriers
        if (lane == 0) {
            if (p.started) add_release(p.started, 1);
            w = work_of<Glue>(take_ticket<Glue, Shape::PERSISTENT>(p, epoch, 0));
            write_work(room.work, w);
            shared_store(room.gate, 0);
            if (p.stamps && w.ticket >= 0) stamp_start(p, w.ticket, placed);
        }
    }
    if (thread == 0) {
        tensor_prefetch(a);
        tensor_prefetch(b);
        for (int s = 0; s < Shape::STAGES; s++) {
            barrier_init(room.full + s * 8, 1);
            barrier_init(room.empty + s * 8, Shape::CONSUMERS / 32); // a thread of every consumer warp
        }
        for (int s = 0; s < 2; s++) {
            barrier_init(room.told + s * 8, 1);
            barrier_init(room.heard + s * 8, Shape::CONSUMERS + 2); // consumers, loader, poster
        }
        barrier_init(room.stored, Shape::CONSUMERS);
        barrier_init_fence();
    }
    if (p.flags & CUSIM_PDL_TRIGGER) pdl_trigger();
    if (p.flags & CUSIM_PDL_WAIT_START) pdl_wait();
    block_barrier();

    if (warp < 4) {
        if constexpr (Shape::MOVES) registers_down<Shape::FEW>();
        if (warp == 0 && lane == 0) {
            Loader<Shape> loader = {p, room, a, a_second, b, {}, {}, 0};
            load_tiles<Shape, Glue>(loader);
        } else if (warp == 1) {
            look_out<Shape, Glue>(p, room, epoch, read_work(room.work), lane);
        } else if (warp == 2 && lane == 0) {
            post_tiles<Shape, Glue>(p, room, epoch);
        }
    } else {
        if constexpr (Shape::MOVES) registers_up<Shape::MANY>();
        consume_tiles<Shape, Glue>(p, room, epoch, thread - 128);
    }
    // One thread, once it has posted: a warp that waits any earlier holds the whole block's memory traffic back. And one
    // block, that of the last ticket: it keeps the kernel from ending before the one ahead; others would keep slots.
    if ((p.flags & CUSIM_PDL_WAIT_END) && thread == 64)
        if (Shape::PERSISTENT || read_work(room.work).ticket == Glue::tickets - 1) pdl_wait();
}

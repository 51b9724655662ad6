// C = A B for sm_80 and later: cp.async into a ring of stages, ldmatrix and mma.sync out of it. All warps do the same;
// warp 0 also looks out for the semaphores of A, a step before anybody loads, ordered by the barrier of each step.
#pragma once
#include "split_k.cuh"
#include "sync.cuh"
#include "tile_math.cuh"

template <int BM_, int BN_, int BK_, int STAGES_, int WM_, int WN_, bool BF16_, int EPILOGUE_, int PROLOGUE_, bool PERSISTENT_>
struct MmaShape {
    static constexpr int BM = BM_, BN = BN_, BK = BK_, STAGES = STAGES_, WM = WM_, WN = WN_;
    static constexpr bool BF16 = BF16_, PERSISTENT = PERSISTENT_;
    static constexpr int EPILOGUE = EPILOGUE_, PROLOGUE = PROLOGUE_;
    static constexpr int WARPS_N = BN / WN, WARPS = BM / WM * WARPS_N, THREADS = 32 * WARPS;
    static constexpr int HALVES = PROLOGUE == CUSIM_SWIGLU ? 2 : 1;
    static constexpr int A_BYTES = BM * BK * 2, B_BYTES = BK * BN * 2, STAGE_BYTES = HALVES * A_BYTES + B_BYTES;
    static constexpr int SHARED_BYTES = 1024 + STAGES * STAGE_BYTES + 64;
    // 16-byte chunks: in a row of A and of B, and how many a thread copies of each.
    static constexpr int A_CHUNKS = BK / 8, B_CHUNKS = BN / 8;
    static constexpr int A_COPIES = BM * A_CHUNKS / THREADS, B_COPIES = BK * B_CHUNKS / THREADS;
    static constexpr int BLOCKS = THREADS <= 128 ? 2 : 1;
    static_assert(A_COPIES * THREADS == BM * A_CHUNKS && B_COPIES * THREADS == BK * B_CHUNKS, "copies");
    static_assert(BK == 64 && WM % 16 == 0 && WN % 32 == 0 && STAGES >= 2 && STAGE_BYTES % 128 == 0, "tile");
};

// Byte offset of a chunk in a block with CHUNKS of them a row: eight rows of one column meet eight bank groups.
template <int CHUNKS> DEV u32 chunk_at(int row, int chunk) { return (u32)(row * CHUNKS + (chunk ^ (row & 7))) * 16; }

template <class Shape, class Glue> struct MmaBlock {
    static constexpr int MI = Shape::WM / 16, NJ = Shape::WN / 8, THREADS = Shape::THREADS;
    const CusimParams& p;
    u32 stages, words; // shared memory: the ring; Work, the gate, the split-K flag
    u32 epoch;
    int thread, lane, warp;
    Work w;
    Gate<Glue> gate; // warp 0's
    float sums[MI][NJ][4];

    DEV Work given() const {
        u32 one[4], two[4];
        shared_load_16(words, one);
        shared_load_16(words + 16, two);
        return Work{(int)one[0], (int)one[1], (int)one[2], (int)one[3], (int)two[0], (int)two[1]};
    }
    DEV u32 stage(int step) const { return stages + step % Shape::STAGES * Shape::STAGE_BYTES; }

    // Everything outside the matrices is zero, and the slice's last step may be short.
    DEV void copy_a(int step) {
        const u32 to = stage(step);
#pragma unroll
        for (int i = 0; i < Shape::A_COPIES; i++) {
            const int at = thread + i * THREADS, row = at / Shape::A_CHUNKS, chunk = at % Shape::A_CHUNKS;
            const int line = w.r * Shape::BM + row, column = (w.first + step) * Shape::BK + chunk * 8;
            const bool inside = line < p.m && column < p.k;
            const u16* from = (const u16*)p.a + (inside ? (long long)line * p.lda + column : 0);
            copy_16(to + chunk_at<Shape::A_CHUNKS>(row, chunk), from, inside);
            if constexpr (Shape::HALVES == 2)
                copy_16(to + Shape::A_BYTES + chunk_at<Shape::A_CHUNKS>(row, chunk), inside ? from + p.k : from, inside);
        }
    }
    DEV void copy_b(int step) {
        const u32 to = stage(step) + Shape::HALVES * Shape::A_BYTES;
#pragma unroll
        for (int i = 0; i < Shape::B_COPIES; i++) {
            const int at = thread + i * THREADS, row = at / Shape::B_CHUNKS, chunk = at % Shape::B_CHUNKS;
            const int line = (w.first + step) * Shape::BK + row, column = w.c * Shape::BN + chunk * 8;
            const bool inside = line < p.k && column < p.n;
            const u16* from = (const u16*)p.b + (inside ? (long long)line * p.ldb + column : 0);
            copy_16(to + chunk_at<Shape::B_CHUNKS>(row, chunk), from, inside);
        }
    }
    // SwiGLU on the chunks this thread copied itself: they are there for it once its own copies are.
    DEV void join_halves(int step) {
        const u32 at_stage = stage(step);
#pragma unroll
        for (int i = 0; i < Shape::A_COPIES; i++) {
            const int at = thread + i * THREADS;
            const u32 gate_at = at_stage + chunk_at<Shape::A_CHUNKS>(at / Shape::A_CHUNKS, at % Shape::A_CHUNKS);
            u32 left[4], right[4];
            shared_load_16(gate_at, left);
            shared_load_16(gate_at + Shape::A_BYTES, right);
            swiglu_8<Shape::BF16>(left, right);
            shared_store_16(gate_at, left);
        }
    }
    // Warp 0: returns when step `step` of A may be loaded. A barrier must follow before others load it.
    DEV void open_gate(int step) {
        if (warp == 0)
            while (gate.steps_open <= step && gate.steps_open < w.steps) gate.look(p, epoch, w, lane);
    }
    DEV void products(int step) {
        const u32 a_at = stage(step), b_at = a_at + Shape::HALVES * Shape::A_BYTES;
        const int row0 = warp / Shape::WARPS_N * Shape::WM, column0 = warp % Shape::WARPS_N * Shape::WN;
        u32 a[MI][4], b[2][NJ / 2][4];
        // B of the next 16 k elements is loaded while the products of these run; there are no registers for A as well.
        auto fragments = [&](int kk, int to) {
#pragma unroll
            for (int j = 0; j < NJ / 2; j++)
                load_matrix_t(b[to][j], b_at + chunk_at<Shape::B_CHUNKS>(kk * 16 + (lane & 15), (column0 + j * 16) / 8 + (lane >> 4)));
        };
        fragments(0, 0);
#pragma unroll
        for (int kk = 0; kk < Shape::BK / 16; kk++) {
#pragma unroll
            for (int i = 0; i < MI; i++)
                load_matrix(a[i], a_at + chunk_at<Shape::A_CHUNKS>(row0 + i * 16 + (lane & 15), kk * 2 + (lane >> 4)));
            if (kk + 1 < Shape::BK / 16) fragments(kk + 1, (kk + 1) & 1);
#pragma unroll
            for (int i = 0; i < MI; i++)
#pragma unroll
                for (int j = 0; j < NJ; j++)
                    mma_16x8x16<Shape::BF16>(sums[i][j], a[i], b[kk & 1][j / 2][(j & 1) * 2], b[kk & 1][j / 2][(j & 1) * 2 + 1]);
        }
    }
    DEV void multiply() {
        constexpr int AHEAD = Shape::STAGES - 1;
#pragma unroll
        for (int i = 0; i < MI; i++)
#pragma unroll
            for (int j = 0; j < NJ; j++)
#pragma unroll
                for (int e = 0; e < 4; e++) sums[i][j][e] = 0.f;
        gate.start();
        const bool b_first = p.flags & CUSIM_REORDER;
        if (b_first) // R: these join the group of step 0's A, which is waited for first of all
            for (int s = 0; s < AHEAD && s < w.steps; s++) copy_b(s);
        const u64 from = p.stamps ? now_ns() : 0;
        open_gate(0);
        block_barrier();
        if (thread == 0 && p.stamps) {
            stamp_now(p, w.ticket, CUSIM_STAMP_FIRST_LOAD);
            stamp(p, w.ticket, CUSIM_STAMP_WAITED, now_ns() - from);
        }
        // Steps that the gate has not opened yet must not be loaded here: each is opened by warp 0 behind a barrier.
        for (int s = 0; s < AHEAD; s++) {
            if (s > 0 && Gate<Glue>::waits) {
                open_gate(s);
                block_barrier();
            }
            if (s < w.steps) {
                copy_a(s);
                if (!b_first) copy_b(s);
            }
            copy_commit();
        }
        for (int step = 0; step < w.steps; step++) {
            copy_wait<AHEAD - 1>();
            if constexpr (Shape::PROLOGUE == CUSIM_SWIGLU) join_halves(step);
            open_gate(step + AHEAD);
            block_barrier(); // the stage is full for all, the one before is free, and the gate is open for all
            if (step + AHEAD < w.steps) {
                copy_a(step + AHEAD);
                copy_b(step + AHEAD);
            }
            copy_commit();
            products(step);
        }
        copy_wait<0>();
    }
    DEV void store() {
        const int row = w.r * Shape::BM + warp / Shape::WARPS_N * Shape::WM;
        const int column = w.c * Shape::BN + warp % Shape::WARPS_N * Shape::WN;
#pragma unroll
        for (int i = 0; i < MI; i++)
            store_strip<NJ, Shape::BF16, Shape::EPILOGUE>(p, row + i * 16, column, lane, [&](int j, int e) { return sums[i][j][e]; });
    }
    DEV void tile() {
        multiply();
        w = given(); // again: registers are short while the products run
        bool whole = true;
        if constexpr (Glue::slices > 1)
            whole = join_slices<Glue, THREADS, 1, MI * NJ * 4>(p, epoch, w, thread, words + 36, [&](int at) -> float& {
                return sums[at / (NJ * 4)][at / 4 % NJ][at % 4];
            });
        w = given();
        hold_back<Glue>(p, w);
        if (whole) store();
        if constexpr (Glue::posts > 0) proxy_fence(); // each writer: the next kernel may read by bulk copies
        block_barrier();
        if (thread == 0) {
            stamp_now(p, w.ticket, CUSIM_STAMP_END);
            if (whole) post_tile<Glue>(p, epoch, w);
            stamp_now(p, w.ticket, CUSIM_STAMP_POSTED);
        }
    }
};

template <class Shape, class Glue> DEV void gemm_mma(const CusimParams& p) {
    CUSIM_SHARED(memory);
    const u32 stages = (shared_address(memory) + 1023) & ~1023u, words = stages + Shape::STAGES * Shape::STAGE_BYTES;
    const int thread = thread_index();
    const u32 epoch = load_relaxed(p.epoch);
    MmaBlock<Shape, Glue> block = {p, stages, words, epoch, thread, thread & 31, thread >> 5, {}, {}, {}};
    if (p.flags & CUSIM_PDL_TRIGGER) pdl_trigger();
    if (p.flags & CUSIM_PDL_WAIT_START) pdl_wait();
    const u64 placed = p.stamps ? now_ns() : 0;
    if (thread == 0 && p.started) add_release(p.started, 1);
    for (int i = 0;; i++) {
        if (thread == 0) {
            const Work taken = work_of<Glue>(take_ticket<Glue, Shape::PERSISTENT>(p, epoch, i));
            const u32 one[4] = {(u32)taken.ticket, (u32)taken.r, (u32)taken.c, (u32)taken.z};
            const u32 two[4] = {(u32)taken.first, (u32)taken.steps, 0, 0};
            shared_store_16(words, one);
            shared_store_16(words + 16, two);
            if (p.stamps && taken.ticket >= 0) stamp_start(p, taken.ticket, i == 0 ? placed : now_ns());
        }
        block_barrier();
        block.w = block.given();
        if (block.w.ticket < 0) break;
        block.tile();
        if constexpr (!Shape::PERSISTENT) break;
        block_barrier(); // everybody has read this tile's words, and the stages are free
    }
    // One thread, once it has posted: a warp that waits any earlier holds the whole block's memory traffic back. And one
    // block, that of the last ticket: it keeps the kernel from ending before the one ahead; others would keep slots.
    if ((p.flags & CUSIM_PDL_WAIT_END) && thread == 0)
        if (Shape::PERSISTENT || block.w.ticket == Glue::tickets - 1) pdl_wait();
}

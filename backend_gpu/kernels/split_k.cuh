// Split-K by the last to arrive: every slice of a tile stores its sums, and the last one adds all of them up, in the
// order of the slices, so that the result does not depend on who was last. Counters grow, so nothing is ever reset.
#pragma once
#include "sync.cuh"

// Where accumulator quads of a thread lie: slice by slice of a tile, quads outside, threads inside (coalesced).
template <class Glue, int AREA> DEV float* partials_of(const CusimParams& p, const Work& w, int slice) {
    return p.partials + ((long long)(w.r * Glue::cols + w.c) * Glue::slices + slice) * AREA;
}

// True in all threads of the last slice; called by all THREADS consumers. `flag` is a word in shared memory.
template <class Glue, int THREADS, int BARRIER>
DEV bool last_arriver(const CusimParams& p, u32 epoch, const Work& w, int thread, u32 flag) {
    part_barrier<THREADS>(BARRIER); // all partial sums are stored (and the flag of the tile before has been read)
    if (thread == 0) {
        const u32 before = add_acq_rel(p.arrivals + w.r * Glue::cols + w.c, 1);
        shared_store(flag, before == epoch * (u32)Glue::slices - 1);
    }
    part_barrier<THREADS>(BARRIER);
    return shared_load(flag) != 0;
}

// Hands in the sums of this slice. False: another slice finishes the tile. True: the sums are those of the whole tile.
// sum(i) is a reference to the thread's accumulator i of COUNT.
template <class Glue, int THREADS, int BARRIER, int COUNT, class Sum>
DEV bool join_slices(const CusimParams& p, u32 epoch, const Work& w, int thread, u32 flag, const Sum& sum) {
    constexpr int AREA = THREADS * COUNT;
    float* first = partials_of<Glue, AREA>(p, w, 0) + thread * 4; // one pointer that walks: registers are short here
    float* mine = first + (long long)w.z * AREA;
#pragma unroll
    for (int i = 0; i < COUNT; i += 4)
        store_f4(mine + i * THREADS, sum(i), sum(i + 1), sum(i + 2), sum(i + 3));
    if (!last_arriver<Glue, THREADS, BARRIER>(p, epoch, w, thread, flag)) return false;
#pragma unroll
    for (int i = 0; i < COUNT; i++) sum(i) = 0.f;
#pragma unroll 1
    for (int slice = 0; slice < Glue::slices; slice++) {
        const float* from = first + (long long)slice * AREA;
#pragma unroll
        for (int i = 0; i < COUNT; i += 4) {
            float v[4];
            load_f4(from + i * THREADS, v);
#pragma unroll
            for (int e = 0; e < 4; e++) {
                sum(i + e) += v[e];
                if (i % 32 == 28) settle(sum(i + e)); // eight loads in flight, or registers run out
            }
        }
    }
    return true;
}

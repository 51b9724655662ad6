// What backend_gpu/kernels/ptx.cuh offers, on the emulated machine. Same names, same meanings.
#pragma once
#include <cmath>
#include <string_view>

#include "machine.h"
#include "params.cuh"

#define DEV inline
#define CUSIM_MEMBER static inline
#define CUSIM_SHARED(name) char* name = emu::me->block->shared
typedef unsigned short u16;

inline int thread_index() { return emu::me->index; }
inline int block_index() { return emu::me->block->index; }
inline int block_count() { return emu::me->block->launch->grid; }
inline u64 now_ns() { return emu::clock_ns; }
inline u32 sm_index() { return 0; }
inline void sleep_ns(u32) { emu::pass(); }

inline void block_barrier() { emu::meet(emu::me->block->meetings[0], (int)emu::me->block->fibres.size()); }
template <int THREADS> void part_barrier(int id) { emu::meet(emu::me->block->meetings[id], THREADS); }
inline void warp_barrier() { emu::meet(emu::me->warp->meeting, 32); }
template <class Read> auto warp_trade(u32 mine, const Read& read) {
    emu::me->warp->word[emu::me->index % 32] = mine;
    warp_barrier();
    const auto found = read(emu::me->warp->word);
    warp_barrier();
    return found;
}
inline u32 warp_ballot(bool yes) {
    return warp_trade(yes, [](const u32* w) { u32 bits = 0; for (int i = 0; i < 32; i++) bits |= w[i] << i; return bits; });
}
inline u32 warp_read(u32 value, int lane) { return warp_trade(value, [=](const u32* w) { return w[lane]; }); }
inline u32 warp_xor(u32 value, int mask) { const int lane = emu::me->index % 32; return warp_trade(value, [=](const u32* w) { return w[lane ^ mask]; }); }
inline int lowest_bit(u32 bits) { return bits ? __builtin_ctz(bits) : -1; }

inline u32 load_acquire(const u32* p) { return *p; }
inline u32 load_relaxed(const u32* p) { return *p; }
inline void add_release(u32* p, u32 v) { *p += v; }
inline void store_release(u32* p, u32 v) { *p = v; }
inline void store_relaxed(u32* p, u32 v) { *p = v; }
inline u32 add_acq_rel(u32* p, u32 v) { const u32 old = *p; *p += v; return old; }
inline u32 add_relaxed(u32* p, u32 v) { return add_acq_rel(p, v); }
inline u32 swap_if(u32* p, u32 was, u32 v) { const u32 old = *p; if (old == was) *p = v; return old; }

inline void aligned(const void* p, unsigned bytes) { if ((uint64_t)p % bytes) emu::fail("misaligned global memory"); }
inline void store_u64(u64* p, u64 v) { aligned(p, 8); *p = v; }
inline void store_16(void* p, const u32 (&v)[4]) { aligned(p, 16); emu::dawdle(); std::memcpy(p, v, 16); }
inline void store_2(void* p, u32 v) { const u16 low = (u16)v; std::memcpy(p, &low, 2); }
inline void store_f4(float* p, float a, float b, float c, float d) { aligned(p, 16); emu::dawdle(); p[0] = a; p[1] = b; p[2] = c; p[3] = d; }
inline void load_f4(const float* p, float (&v)[4]) { aligned(p, 16); std::memcpy(v, p, 16); }

inline u32 shared_address(const void* p) { return (u32)((const char*)p - emu::me->block->shared); }
inline void shared_load_16(u32 a, u32 (&v)[4]) { std::memcpy(v, emu::shared_at(a, 16), 16); }
inline void shared_store_16(u32 a, const u32 (&v)[4]) { std::memcpy(emu::shared_at(a, 16), v, 16); }
inline void shared_store(u32 a, u32 v) { std::memcpy(emu::shared_at(a, 4), &v, 4); }
inline u32 shared_load(u32 a) { u32 v; std::memcpy(&v, emu::shared_at(a, 4), 4); return v; }
inline void shared_store_release(u32 a, u32 v) { shared_store(a, v); }
inline u32 shared_load_acquire(u32 a) { emu::pass(); return shared_load(a); }

inline float from_fp16(u32 bits) { const u16 low = (u16)bits; _Float16 h; std::memcpy(&h, &low, 2); return (float)h; }
inline float from_bf16(u32 bits) { const u32 high = bits << 16; float f; std::memcpy(&f, &high, 4); return f; }
inline u32 to_fp16(float x) { const _Float16 h = (_Float16)x; u16 bits; std::memcpy(&bits, &h, 2); return bits; }
inline u32 to_bf16(float x) { u32 bits; std::memcpy(&bits, &x, 4); return std::isnan(x) ? 0x7fff : (bits + 0x7fff + (bits >> 16 & 1)) >> 16; }
inline u32 pack_fp16(float lo, float hi) { return to_fp16(lo) | to_fp16(hi) << 16; }
inline u32 pack_bf16(float lo, float hi) { return to_bf16(lo) | to_bf16(hi) << 16; }
inline float tanh_fast(float x) { return std::tanh(x); }
inline void settle(float&) {}

// ---- cp.async: nothing lands before it is waited for (late), or everything at once
inline void do_copy(const emu::Copy& c) {
    char* to = emu::shared_at(c.to, 16);
    if (c.inside) std::memcpy(to, c.from, 16);
    else std::memset(to, 0, 16);
}
inline void copy_16(u32 to, const void* from, bool inside) {
    aligned(from, 16);
    if (emu::late) emu::me->copies.back().push_back({to, from, inside});
    else do_copy({to, from, inside});
}
inline void copy_commit() { emu::me->copies.emplace_back(); }
template <int LEFT> void copy_wait() {
    auto& groups = emu::me->copies;
    while ((int)groups.size() - 1 > LEFT) {
        for (const auto& c : groups.front()) do_copy(c);
        groups.erase(groups.begin());
    }
}
inline void read_matrices(u32 (&r)[4], u32 a, bool transposed) {
    const int lane = emu::me->index % 32;
    warp_trade(a, [&](const u32* rows) {
        for (int i = 0; i < 4; i++) {
            u16 lo, hi;
            for (int half = 0; half < 2; half++) {
                const int row = transposed ? lane % 4 * 2 + half : lane / 4, column = transposed ? lane / 4 : lane % 4 * 2 + half;
                std::memcpy(half ? &hi : &lo, emu::shared_at(rows[i * 8 + row], 16) + column * 2, 2);
            }
            r[i] = lo | (u32)hi << 16;
        }
        return 0;
    });
}
inline void load_matrix(u32 (&r)[4], u32 a) { read_matrices(r, a, false); }
inline void load_matrix_t(u32 (&r)[4], u32 a) { read_matrices(r, a, true); }
template <bool BF16> float number(u32 words, int half) { const u32 bits = words >> (16 * half) & 0xffff; return BF16 ? from_bf16(bits) : from_fp16(bits); }
template <bool BF16> void mma_16x8x16(float (&c)[4], const u32 (&a)[4], u32 b0, u32 b1) {
    emu::Warp& w = *emu::me->warp;
    const int lane = emu::me->index % 32;
    std::memcpy(w.a[lane], a, 16);
    w.b[lane][0] = b0;
    w.b[lane][1] = b1;
    warp_barrier();
    for (int e = 0; e < 4; e++) {
        const int row = lane / 4 + e / 2 * 8, column = lane % 4 * 2 + e % 2;
        for (int k = 0; k < 16; k++) {
            const u32 left = w.a[row % 8 * 4 + k % 8 / 2][(row >= 8) + 2 * (k >= 8)], right = w.b[column * 4 + k % 8 / 2][k >= 8];
            c[e] += number<BF16>(left, k & 1) * number<BF16>(right, k & 1);
        }
    }
    warp_barrier();
}

// ---- sm_90
inline void pdl_trigger() {}
inline void pdl_wait() {}
inline void proxy_fence() {}
inline void proxy_fence_shared() {}
inline void barrier_init(u32 bar, u32 count) { emu::shared_at(bar, 8); emu::me->block->barriers[bar] = {(int)count, (int)count, 0, 0}; }
inline void barrier_init_fence() {}
inline void barrier_arrive(u32 bar) { auto& b = emu::barrier_at(bar); b.pending--; emu::complete(b); }
inline void barrier_expect(u32 bar, u32 bytes) { auto& b = emu::barrier_at(bar); b.bytes += (int)bytes; barrier_arrive(bar); }
inline bool barrier_test(u32 bar, u32 parity) { return emu::barrier_at(bar).parity != parity; }
inline bool barrier_try(u32 bar, u32 parity) {
    auto& b = emu::barrier_at(bar);
    const u64 until = emu::clock_ns + 20000;
    if (b.parity == parity) emu::pass([&b, parity, until] { return b.parity != parity || emu::clock_ns > until; });
    return b.parity != parity;
}
inline void tensor_prefetch(const CusimTensorMap*) {}
inline void tensor_load(u32 to, const CusimTensorMap* map, u32 bar, int column, int row) {
    if (to % 1024) emu::fail("a bulk copy to no 1024-byte boundary");
    emu::me->block->bulks.push_back({to, bar, map, column, row});
}
// The 128-byte swizzle: 16-byte chunks of a line change places by the line's number.
inline u32 swizzled(u32 at) { return at ^ (at >> 7 & 7) << 4; }
// An emulated map: address, columns, rows, bytes a row, box columns, box rows.
inline void emu::land(Block* block, const Bulk& bulk) {
    const u64* m = static_cast<const CusimTensorMap*>(bulk.map)->words;
    const int width = (int)m[4], height = (int)m[5];
    for (int r = 0; r < height; r++)
        for (int c = 0; c < width; c++) {
            const int row = bulk.row + r, column = bulk.column + c;
            u16 value = 0;
            if (row < (int)m[2] && column < (int)m[1]) std::memcpy(&value, (const char*)m[0] + row * m[3] + column * 2, 2);
            std::memcpy(shared_at(swizzled(bulk.to + (u32)(r * width + c) * 2), 2, block), &value, 2);
        }
    Barrier& b = barrier_at(bulk.bar, block);
    b.bytes -= width * height * 2;
    complete(b);
}
template <int REGISTERS> void registers_down() {}
template <int REGISTERS> void registers_up() {}

// ---- wgmma: operands are read when the group is waited for, or, if not late, when it is committed
inline void do_product(const emu::Product& o) {
    const int thread = emu::me->index % 128, warp = thread / 32, lane = thread % 32;
    const auto part = [](u64 d, int shift) { return (u32)(d >> shift & 0x3fff) << 4; };
    if (o.a >> 62 != 1 || o.b >> 62 != 1) emu::fail("a descriptor without the 128-byte swizzle");
    const auto at = [&](u32 a) { u16 bits; std::memcpy(&bits, emu::shared_at(swizzled(a), 2), 2); return o.bf16 ? from_bf16(bits) : from_fp16(bits); };
    for (int j = 0; j < o.columns / 8; j++)
        for (int e = 0; e < 4; e++) {
            const u32 row = (u32)(warp * 16 + lane / 4 + e / 2 * 8), column = (u32)(j * 8 + lane % 4 * 2 + e % 2);
            float sum = o.sums[j * 4 + e];
            for (u32 k = 0; k < 16; k++)
                sum += at(part(o.a, 0) + row / 8 * part(o.a, 32) + row % 8 * 128 + k * 2) *
                       at(part(o.b, 0) + column / 64 * part(o.b, 16) + k / 8 * part(o.b, 32) + k % 8 * 128 + column % 64 * 2);
            o.sums[j * 4 + e] = sum;
        }
}
inline void wgmma_fence() {}
inline void wgmma_commit() {
    if (!emu::late) {
        for (const auto& o : emu::me->products.back()) do_product(o);
        emu::me->products.back().clear();
    }
    emu::me->products.emplace_back();
}
template <int LEFT> void wgmma_wait() {
    auto& groups = emu::me->products;
    while ((int)groups.size() - 1 > LEFT) {
        for (const auto& o : groups.front()) do_product(o);
        groups.erase(groups.begin());
    }
}
template <int COUNT> void wgmma_hold(float (&)[COUNT]) {}
template <int N, bool BF16> struct Wgmma {
    static void run(float (&d)[N / 2], u64 a, u64 b, u32) { emu::me->products.back().push_back({d, N, a, b, BF16}); }
};

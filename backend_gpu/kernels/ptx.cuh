// Every machine instruction the kernels name, one function each. The CPU emulator of the tests (tests/emu) replaces
// this file and nothing else, so nothing but these wrappers may hold inline PTX or a CUDA builtin variable.
#pragma once
#ifdef CUSIM_EMU
#include "emu_ptx.h"
#else
#include "params.cuh"

#define DEV __device__ __forceinline__
#define CUSIM_MEMBER static __device__ __forceinline__
#define CUSIM_SHARED(name) extern __shared__ __align__(1024) char name[]

typedef unsigned short u16; // the bits of an fp16 or bf16 number

// ---- who and when
DEV int thread_index() { return (int)threadIdx.x; }
DEV int block_index() { return (int)blockIdx.x; }
DEV int block_count() { return (int)gridDim.x; }
DEV u64 now_ns() { u64 t; asm volatile("mov.u64 %0, %globaltimer;" : "=l"(t)); return t; }
DEV u32 sm_index() { u32 s; asm volatile("mov.u32 %0, %smid;" : "=r"(s)); return s; }
DEV void sleep_ns(u32 ns) { asm volatile("nanosleep.u32 %0;" :: "r"(ns)); }

// ---- warps and blocks
DEV void block_barrier() { __syncthreads(); }
template <int THREADS> DEV void part_barrier(int id) { asm volatile("bar.sync %0, %1;" :: "r"(id), "n"(THREADS) : "memory"); }
DEV void warp_barrier() { __syncwarp(); }
DEV u32 warp_ballot(bool yes) { return __ballot_sync(0xffffffffu, yes); }
DEV u32 warp_read(u32 value, int lane) { return __shfl_sync(0xffffffffu, value, lane); }
DEV int lowest_bit(u32 bits) { return __ffs((int)bits) - 1; }
DEV u32 warp_xor(u32 value, int mask) { return __shfl_xor_sync(0xffffffffu, value, mask); }

// ---- global memory: synchronisation
DEV u32 load_acquire(const u32* p) { u32 v; asm volatile("ld.acquire.gpu.global.u32 %0, [%1];" : "=r"(v) : "l"(p) : "memory"); return v; }
DEV u32 load_relaxed(const u32* p) { u32 v; asm volatile("ld.relaxed.gpu.global.u32 %0, [%1];" : "=r"(v) : "l"(p) : "memory"); return v; }
DEV void add_release(u32* p, u32 v) { asm volatile("red.release.gpu.global.add.u32 [%0], %1;" :: "l"(p), "r"(v) : "memory"); }
DEV void store_release(u32* p, u32 v) { asm volatile("st.release.gpu.global.u32 [%0], %1;" :: "l"(p), "r"(v) : "memory"); }
DEV void store_relaxed(u32* p, u32 v) { asm volatile("st.relaxed.gpu.global.u32 [%0], %1;" :: "l"(p), "r"(v) : "memory"); }
DEV u32 add_acq_rel(u32* p, u32 v) { u32 old; asm volatile("atom.acq_rel.gpu.global.add.u32 %0, [%1], %2;" : "=r"(old) : "l"(p), "r"(v) : "memory"); return old; }
DEV u32 add_relaxed(u32* p, u32 v) { u32 old; asm volatile("atom.relaxed.gpu.global.add.u32 %0, [%1], %2;" : "=r"(old) : "l"(p), "r"(v) : "memory"); return old; }
DEV u32 swap_if(u32* p, u32 was, u32 v) { u32 old; asm volatile("atom.acq_rel.gpu.global.cas.b32 %0, [%1], %2, %3;" : "=r"(old) : "l"(p), "r"(was), "r"(v) : "memory"); return old; }

// ---- global memory: data. Loads go past L1, which is not kept coherent between SMs.
DEV void store_u64(u64* p, u64 v) { asm volatile("st.global.u64 [%0], %1;" :: "l"(p), "l"(v) : "memory"); }
DEV void store_16(void* p, const u32 (&v)[4]) { asm volatile("st.global.v4.u32 [%0], {%1,%2,%3,%4};" :: "l"(p), "r"(v[0]), "r"(v[1]), "r"(v[2]), "r"(v[3]) : "memory"); }
DEV void store_2(void* p, u32 v) { asm volatile("st.global.u16 [%0], %1;" :: "l"(p), "h"((u16)v) : "memory"); }
DEV void store_f4(float* p, float a, float b, float c, float d) { asm volatile("st.global.v4.f32 [%0], {%1,%2,%3,%4};" :: "l"(p), "f"(a), "f"(b), "f"(c), "f"(d) : "memory"); }
DEV void load_f4(const float* p, float (&v)[4]) { asm volatile("ld.global.cg.v4.f32 {%0,%1,%2,%3}, [%4];" : "=f"(v[0]), "=f"(v[1]), "=f"(v[2]), "=f"(v[3]) : "l"(p) : "memory"); }

// ---- shared memory, by its 32-bit address
DEV u32 shared_address(const void* p) { return (u32)__cvta_generic_to_shared(p); }
DEV void shared_load_16(u32 a, u32 (&v)[4]) { asm volatile("ld.shared.v4.u32 {%0,%1,%2,%3}, [%4];" : "=r"(v[0]), "=r"(v[1]), "=r"(v[2]), "=r"(v[3]) : "r"(a) : "memory"); }
DEV void shared_store_16(u32 a, const u32 (&v)[4]) { asm volatile("st.shared.v4.u32 [%0], {%1,%2,%3,%4};" :: "r"(a), "r"(v[0]), "r"(v[1]), "r"(v[2]), "r"(v[3]) : "memory"); }
DEV void shared_store(u32 a, u32 v) { asm volatile("st.shared.u32 [%0], %1;" :: "r"(a), "r"(v) : "memory"); }
DEV u32 shared_load(u32 a) { u32 v; asm volatile("ld.shared.u32 %0, [%1];" : "=r"(v) : "r"(a) : "memory"); return v; }
DEV void shared_store_release(u32 a, u32 v) { asm volatile("st.release.cta.shared::cta.u32 [%0], %1;" :: "r"(a), "r"(v) : "memory"); }
DEV u32 shared_load_acquire(u32 a) { u32 v; asm volatile("ld.acquire.cta.shared::cta.u32 %0, [%1];" : "=r"(v) : "r"(a) : "memory"); return v; }

// ---- numbers. PTX puts the first source into the upper half.
DEV u32 pack_fp16(float lo, float hi) { u32 d; asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(d) : "f"(hi), "f"(lo)); return d; }
DEV u32 pack_bf16(float lo, float hi) { u32 d; asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(d) : "f"(hi), "f"(lo)); return d; }
DEV float from_fp16(u32 bits) { float f; asm("cvt.f32.f16 %0, %1;" : "=f"(f) : "h"((u16)bits)); return f; }
DEV float from_bf16(u32 bits) { float f; asm("mov.b32 %0, %1;" : "=f"(f) : "r"(bits << 16)); return f; }
DEV float tanh_fast(float x) { float y; asm("tanh.approx.f32 %0, %1;" : "=f"(y) : "f"(x)); return y; }

// Has the value computed here and no later: bounds how many loads the compiler keeps in flight.
DEV void settle(float& x) { asm volatile("" : "+f"(x)); }

// ---- sm_80: asynchronous copies and mma.sync
DEV void copy_16(u32 to, const void* from, bool inside) { // zeros where not inside
    asm volatile("cp.async.cg.shared.global.L2::128B [%0], [%1], 16, %2;" :: "r"(to), "l"(from), "r"(inside ? 16 : 0) : "memory");
}
DEV void copy_commit() { asm volatile("cp.async.commit_group;" ::: "memory"); }
template <int LEFT> DEV void copy_wait() { asm volatile("cp.async.wait_group %0;" :: "n"(LEFT) : "memory"); }
DEV void load_matrix(u32 (&r)[4], u32 a) { asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];" : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3]) : "r"(a) : "memory"); }
DEV void load_matrix_t(u32 (&r)[4], u32 a) { asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0,%1,%2,%3}, [%4];" : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3]) : "r"(a) : "memory"); }
#define CUSIM_MMA(type) \
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32." type "." type ".f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};" \
                 : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3]) : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1))
template <bool BF16> DEV void mma_16x8x16(float (&c)[4], const u32 (&a)[4], u32 b0, u32 b1) {
    if constexpr (BF16) CUSIM_MMA("bf16");
    else CUSIM_MMA("f16");
}

// ---- sm_90: launch control, barriers in shared memory, bulk tensor copies
#if __CUDA_ARCH__ >= 900
DEV void pdl_trigger() { asm volatile("griddepcontrol.launch_dependents;" ::: "memory"); }
DEV void pdl_wait() { asm volatile("griddepcontrol.wait;" ::: "memory"); }
DEV void proxy_fence() { asm volatile("fence.proxy.async;" ::: "memory"); }
DEV void proxy_fence_shared() { asm volatile("fence.proxy.async.shared::cta;" ::: "memory"); }
DEV void barrier_init(u32 bar, u32 count) { asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" :: "r"(bar), "r"(count) : "memory"); }
DEV void barrier_init_fence() { asm volatile("fence.mbarrier_init.release.cluster;\nfence.proxy.async;" ::: "memory"); }
DEV void barrier_arrive(u32 bar) { asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" :: "r"(bar) : "memory"); }
DEV void barrier_expect(u32 bar, u32 bytes) { asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" :: "r"(bar), "r"(bytes) : "memory"); }
// True once the phase of this parity has completed; may suspend the thread for a while.
DEV bool barrier_try(u32 bar, u32 parity) {
    u32 done;
    asm volatile("{\n.reg .pred p;\nmbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2;\nselp.u32 %0, 1, 0, p;\n}"
                 : "=r"(done) : "r"(bar), "r"(parity) : "memory");
    return done;
}
DEV bool barrier_test(u32 bar, u32 parity) { // the same without suspending
    u32 done;
    asm volatile("{\n.reg .pred p;\nmbarrier.test_wait.parity.shared::cta.b64 p, [%1], %2;\nselp.u32 %0, 1, 0, p;\n}"
                 : "=r"(done) : "r"(bar), "r"(parity) : "memory");
    return done;
}
DEV void tensor_prefetch(const CusimTensorMap* map) { asm volatile("prefetch.tensormap [%0];" :: "l"(map) : "memory"); }
DEV void tensor_load(u32 to, const CusimTensorMap* map, u32 bar, int column, int row) {
    asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%3, %4}], [%2];"
                 :: "r"(to), "l"(map), "r"(bar), "r"(column), "r"(row) : "memory");
}
template <int REGISTERS> DEV void registers_down() { asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" :: "n"(REGISTERS)); }
template <int REGISTERS> DEV void registers_up() { asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" :: "n"(REGISTERS)); }
#else
DEV void pdl_trigger() {}
DEV void pdl_wait() {}
DEV void proxy_fence() {} // no asynchronous proxy before sm_90
#endif

// ---- sm_90a: products of a warpgroup
#ifdef CUSIM_WGMMA
#include "ptx_wgmma.cuh"
#endif
#endif
